# SPDX-License-Identifier: Apache-2.0
"""Whose namespaces and files are whose: names that carry their owner, and the removal of what the dead left.

An owner is a process, by its id and its start time in clock ticks since boot: ids come again, the two together
do not.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

from testctl.system.subprocesses import run

NAMED = Path("/run/netns")
HOMES = Path("/run/testctl/netns")
_NAME = re.compile(r"testctl-([0-9]+)-([0-9]+)(?:-.*)?")


@dataclass(frozen=True)
class Owner:
    """A process."""

    pid: int
    started: int

    @property
    def name(self) -> str:
        """What names of its namespaces and directories begin with."""
        return f"testctl-{self.pid}-{self.started}"

    def alive(self, proc: Path = Path("/proc")) -> bool:
        return start_time(self.pid, proc) == self.started


def start_time(pid: int, proc: Path = Path("/proc")) -> int | None:
    """When a process was started, in ticks since boot; None for one that has ended."""
    try:
        fields = (proc / str(pid) / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def owner_of(name: str) -> Owner | None:
    """The owner that a name carries; None when it is none of ours."""
    found = _NAME.fullmatch(name)
    return Owner(int(found[1]), int(found[2])) if found else None


def remove_abandoned() -> None:
    """Remove the namespaces and files of killed runs.  Safe to call concurrently."""
    for path in (*NAMED.glob("testctl-*"), *HOMES.glob("testctl-*")):
        if (owner := owner_of(path.name)) and not owner.alive():
            remove(path)


def remove(path: Path) -> None:
    """A namespace by its name's path, or a directory."""
    if path.parent == NAMED:
        with suppress(TestbedError):  # somebody else was faster; what can't go stays and is seen again
            run(["ip", "netns", "delete", path.name])
    else:
        shutil.rmtree(path, ignore_errors=True)
