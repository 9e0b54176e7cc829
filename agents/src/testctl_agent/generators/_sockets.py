# SPDX-License-Identifier: Apache-2.0
"""Waits until a server listens, without a connection to it: it may serve only one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from testctl_agent.system.subprocesses import Process
from testctl_agent.tasks.task import wait_for

_POLL_S = 0.005
_LISTEN = "0A"


def _sockets(proc: Path, *tables: str) -> Iterator[tuple[int, str]]:
    """(local port, state) of this namespace's sockets (proc(5), net/tcp)."""
    for table in tables:
        path = proc / "net" / table
        for line in path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else []:
            fields = line.split()
            yield int(fields[1].rpartition(":")[2], 16), fields[3]


def listens(port: int, proc: Path = Path("/proc")) -> bool:
    """Whether some socket listens at that TCP port."""
    return (port, _LISTEN) in _sockets(proc, "tcp", "tcp6")


def bound(port: int, proc: Path = Path("/proc")) -> bool:
    """Whether some socket is bound to that UDP port."""
    return any(number == port for number, _ in _sockets(proc, "udp", "udp6"))


def wait_until(ready: Callable[[], bool], process: Process, timeout_s: float) -> bool:
    """Wait until `ready` is true; False when the program ended before, or too late."""
    for _ in range(int(timeout_s / _POLL_S)):
        if ready():
            return True
        if wait_for(process, _POLL_S):
            return False
    return False
