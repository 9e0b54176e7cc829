# SPDX-License-Identifier: Apache-2.0
"""The congestion controls of lab/cc that are written against testctl_cc.h."""

from __future__ import annotations

import functools
from pathlib import Path

from testctl_agent.cc.host import Algorithm

LAB_CC = Path(__file__).parents[3] / "lab" / "cc"
SOURCES = sorted(path for path in LAB_CC.glob("tcp_*.c") if "TESTCTL_CC" in path.read_text(encoding="utf-8"))


def write(folder: Path, text: str, name: str = "tcp_bad.c") -> Path:
    """A congestion control of a test, beside the headers that it includes."""
    for header in LAB_CC.glob("testctl_cc*.h"):
        (folder / header.name).symlink_to(header)
    source = folder / name
    source.write_text(text, encoding="utf-8")
    return source


@functools.cache
def algorithm(name: str) -> Algorithm:
    return Algorithm(LAB_CC / f"tcp_{name}.c")
