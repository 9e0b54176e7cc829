# SPDX-License-Identifier: Apache-2.0
"""python -m testctl_agent.p4c_ebpf translate X.json: print the C of a program."""

from __future__ import annotations

import sys
from pathlib import Path

from testctl_agent.p4c_ebpf.compile import compiled
from testctl_agent.p4c_ebpf.translate import translate
from testctl_agent.spec.errors import TestctlError

_USAGE = """usage: python -m testctl_agent.p4c_ebpf translate X.json    print the program as C
       python -m testctl_agent.p4c_ebpf compile X.json      compile it, say where the object is
"""


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] not in ("translate", "compile"):
        sys.stderr.write(_USAGE)
        return 2
    path = Path(arguments[1])
    try:
        text = translate(path).source if arguments[0] == "translate" else f"{compiled(path).object}\n"
    except TestctlError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
