# SPDX-License-Identifier: Apache-2.0
"""The compiler's commands."""

from __future__ import annotations

import sys
from pathlib import Path

from p4c_ebpf.compile import compiled, read_layout, stale
from p4c_ebpf.errors import Error
from p4c_ebpf.translate import Role, translate

_USAGE = """usage: python -m p4c_ebpf translate X.json      print the program as C
       python -m p4c_ebpf compile X.json DIR    compile it: DIR/X.o, DIR/layout.json
       python -m p4c_ebpf check X.json DIR [front]   whether these are current; needs no clang
       python -m p4c_ebpf front X.json DIR      as compile, to stand in front of another program: DIR/X.o
       python -m p4c_ebpf behind X.json DIR LAYOUT   to stand behind the front with this layout.json: DIR/X.o
"""


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["translate", path]:
                sys.stdout.write(translate(Path(path)).source)
            case ["compile", path, folder]:
                compiled(Path(path), Path(folder))
            case ["front", path, folder]:
                compiled(Path(path), Path(folder), role=Role(is_front=True))
            case ["behind", path, folder, front]:
                compiled(Path(path), Path(folder), role=Role(behind=read_layout(Path(front))))
            case ["check", path, folder, *front] if front in ([], ["front"]):
                if said := stale(Path(path), Path(folder), Role(is_front=bool(front))):
                    sys.stderr.write(f"stale: {said}\n")
                    return 1
            case _:
                sys.stderr.write(_USAGE)
                return 2
    except Error as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"p4c_ebpf: {error}\n")
        return Error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
