# SPDX-License-Identifier: Apache-2.0
"""Racks of tests that were killed: who made a rack is written beside its directory, and the next test removes it."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from simulated_rack import __main__ as tool
from simulated_rack import network

OWNER = "owner"
"""File beside a rack's directory: the process that made it."""


def owned(state: Path) -> None:
    """Write down that this process makes the rack of a directory."""
    state.parent.mkdir(parents=True, exist_ok=True)
    (state.parent / OWNER).write_text(_name(os.getpid()), encoding="ascii")


def remove_abandoned() -> None:
    """Take down the rack of a test that no longer runs.  Every other rack stays: it is somebody's."""
    state = network.belongs_to()
    if state is None:
        return
    owner = state.parent / OWNER
    try:
        name = owner.read_text(encoding="ascii")
    except OSError:
        return
    if name == _name(int(name.split()[0])):
        return
    tool.down(state)
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        if Path(place := line.split()[4]).is_relative_to(state.parent):
            subprocess.run(["umount", "--lazy", place], check=True)
    owner.unlink()


def _name(pid: int) -> str:
    """What no other process has: its number and its time of start; "" if there is none."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        if words[0] != "Z":
            return f"{pid} {words[19]}"
    return ""
