# SPDX-License-Identifier: Apache-2.0
"""P4 programs of the user's, compiled for a switch of the lab (python -m p4c_ebpf behind), and kept in the cache."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import subprocess
import sys
from functools import partial
from pathlib import Path

from testctl_agent.spec import p4_program
from testctl_agent.spec.errors import ProgramError
from testctl_agent.switch import layout, testbed_object
from testctl_agent.switch.layout import Layout

from testctl.system.checkout import cache_dir
from testctl.system.temporary import cache_entry, temporary

_COMPILER = "p4c_ebpf"
_LIMIT_S = 300.0


@functools.cache
def directory() -> Path:
    """Where programs lie that this translator has compiled behind this front.  Raises ProgramError without it."""
    found = importlib.util.find_spec(_COMPILER)
    if found is None or not found.submodule_search_locations:
        raise ProgramError("program: want the compiler of P4 programs, pip install ./plugins/p4c_ebpf; got none")
    digest = hashlib.sha256(testbed_object.front()[1].to_json().encode())
    for place in found.submodule_search_locations:
        for path in sorted(path for ending in ("*.py", "*.h") for path in Path(place).rglob(ending)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return cache_dir() / "programs" / digest.hexdigest()[:16]


def compiled(value: str) -> Path:
    """The directory of a program, which is compiled if it is not there.

    Raises ProgramError: what can't be translated, with its P4 file and line, or what clang printed.
    """
    home, key = directory(), p4_program.key(value)
    if (home / key / p4_program.OBJECT).is_file():
        return home / key
    cache_entry(home / key, partial(_compile, value))
    return home / key


def _compile(value: str, made: Path) -> None:
    name, text = p4_program.parse(value)
    front = testbed_object.front()[0].with_name("layout.json")
    with temporary("testctl-p4-") as work:
        source = work / "program.json"
        source.write_bytes(text)
        argv = [sys.executable, "-P", "-m", _COMPILER, "behind", str(source), str(made), str(front)]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise ProgramError(f"program {name}: want it compiled within {_LIMIT_S:g} s; it was not") from error
        if done.returncode:
            printed = done.stderr.strip().replace(str(source), name)
            raise ProgramError(f"program {name}: {printed or 'its compiler ended'}")


def layout_of(value: str) -> Layout:
    """What lies where in a program's maps.  Raises ProgramError."""
    return layout.from_json((compiled(value) / "layout.json").read_text(encoding="utf-8"))
