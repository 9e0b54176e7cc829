# SPDX-License-Identifier: Apache-2.0
"""A kernel that counts what it executes: the files that are compiled so, and the copies that its readers need."""

from __future__ import annotations

import shutil
from pathlib import Path

VARIANT = "coverage"
COUNTED = ("net/ipv4/tcp*.c", "net/ipv4/inet_*.c", "net/ipv6/tcp*.c", "net/core/*.c", "net/sched/*.c",
           "net/ipv4/testctl/tcp_*.c")  # fmt: skip
"""The files of a kernel's source, lab/cc among them, that are compiled with counters."""
FLAGS = (
    "-fprofile-arcs -ftest-coverage -fno-tree-loop-im -fprofile-update=prefer-atomic -fno-thread-jumps "
    "-fno-early-inlining"
)
"""Of the counted files: the kernel's own, and without two passes before the counters by which gcc moves executions to
other lines, so that lines which are executed have none."""
WRAPS = ("__gcov_init",)
"""Functions of the kernel with another one in front (lab/kernel/variants/coverage_init.c)."""
NOTES = "notes"
"""Directory of a kernel with gcc's notes about each object: functions, blocks, arcs, lines (.gcno)."""
SOURCES = "sources"
"""Directory with the sources' text, as it was compiled."""


def make_arguments(source: Path) -> list[str]:
    """Arguments of make that have the files compiled with counters."""
    stems = {path.stem for pattern in COUNTED for path in source.glob(pattern)}
    return [f"CFLAGS_GCOV={FLAGS}", *(f"GCOV_PROFILE_{stem}.o=y" for stem in sorted(stems))]


def keep_notes(source: Path, objects: Path, kernel: Path) -> None:
    """Copy the notes of a build, and the sources, into the kernel's directory."""
    for pattern in COUNTED:
        for path in source.glob(pattern):
            name = path.relative_to(source)
            notes = (objects / name).with_suffix(".gcno")
            if notes.is_file():
                of_notes = (kernel / NOTES / name).with_suffix(".gcno")
                for place, kept in ((notes, of_notes), (path, kernel / SOURCES / name)):
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(place, kept)
