# SPDX-License-Identifier: Apache-2.0
"""What of the kernel is executed while the traffic passes: counters of gcov, of a variant that has them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from testctl_agent.system.namespace import mount

FILES = Path("/run/debug")
COUNTERS = FILES / "gcov"
"""A tree as the build's, with a .gcda file for each object that was compiled so, and `reset`."""
LENGTHS = struct.Struct("<HI")
"""Before each file: the bytes of its name, which follow, and of its contents, behind them."""
SUFFIX = ".gcda"
BEFORE = "before/"
"""Before the names of files with what was counted before the traffic."""


def prepare() -> None:
    mount("debugfs", str(FILES))


class Counted:
    """What of the kernel was executed before the traffic, and by it."""

    def __init__(self) -> None:
        """From now on it is the traffic's."""
        self._before = _read()
        self._traffic: dict[str, bytes] = {}
        (COUNTERS / "reset").write_text("1", encoding="ascii")

    def end(self) -> None:
        """What is executed from now on is no longer the traffic's."""
        self._traffic = _read()

    def write(self, file: Path) -> None:
        """Each object's two behind each other, for they are much alike."""
        parts = []
        for name, counters in self._traffic.items():
            for in_file, data in ((f"{BEFORE}{name}", self._before[name]), (name, counters)):
                parts += [LENGTHS.pack(len(in_file), len(data)), in_file.encode(), data]
        file.write_bytes(zlib.compress(b"".join(parts)))


def _read() -> dict[str, bytes]:
    """The counters of each object by its name."""
    files = sorted(COUNTERS.rglob(f"*{SUFFIX}"))
    return {str(file.relative_to(COUNTERS)): file.read_bytes() for file in files}
