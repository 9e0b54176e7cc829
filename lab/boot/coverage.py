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


def prepare() -> None:
    mount("debugfs", str(FILES))


def count() -> None:
    """From now on: what was counted until now is forgotten."""
    (COUNTERS / "reset").write_text("1", encoding="ascii")


def write(file: Path) -> None:
    """Write all counters."""
    parts = []
    for path in sorted(COUNTERS.rglob(f"*{SUFFIX}")):
        name, counters = str(path.relative_to(COUNTERS)).encode(), path.read_bytes()
        parts += [LENGTHS.pack(len(name), len(counters)), name, counters]
    file.write_bytes(zlib.compress(b"".join(parts), 1))
