# SPDX-License-Identifier: Apache-2.0
"""python -m testctl_agent.cc: a congestion control of lab/cc in the running kernel, by hand."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from testctl_agent.cc.struct_ops import Registered, unregister
from testctl_agent.spec.errors import TestctlError

_USAGE = """usage: python -m testctl_agent.cc register FILE     register tcp_NAME.c until interrupted
       python -m testctl_agent.cc unregister NAME   remove what was left registered
"""


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] not in ("register", "unregister"):
        sys.stderr.write(_USAGE)
        return 2
    try:
        if arguments[0] == "unregister":
            unregister(arguments[1])
            return 0
        signals = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        with Registered(Path(arguments[1])) as registered:
            print(f"{registered.name} is registered; interrupt (Ctrl-C) to unregister it", flush=True)
            signal.sigwait(signals)
    except TestctlError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
