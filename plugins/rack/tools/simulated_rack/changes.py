# SPDX-License-Identifier: Apache-2.0
"""What a node has that the machine has not: files, processes, settings of its network."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from testctl.system.subprocesses import run
from testctl_agent.spec.errors import TestbedError

from simulated_rack import hosts, network
from simulated_rack.host_init import OVERLAID, layers

BACKUPS = {
    *(f"/etc/{name}-" for name in ("passwd", "shadow", "group", "gshadow", "subuid", "subgid")),
    "/etc/.pwd.lock",
}
"""useradd and userdel leave them, with what was there before."""

_SHARED = {
    f"net.ipv4.{name}"
    for name in ("tcp_allowed_congestion_control", "tcp_available_congestion_control", "tcp_fastopen_key", "tcp_mem")
}
"""Sysctls that all namespaces have in common, so that they say nothing of a node; and a secret."""


def changes(state: Path) -> list[str]:
    """One line each, sorted: "alpha: file /etc/hosts", "s1: process …", "s1: qdisc clsact dev p1".

    Raises TestbedError where there is no rack.
    """
    if not (state / "nodes").is_dir():
        raise TestbedError(f"rack: want the directory of a rack; got {state} (plugins/rack/tools/rack up)")
    found = []
    for folder in sorted((state / "nodes").iterdir()):
        lines = [*_files(folder), *_processes(folder.name), *_network(folder.name)]
        found += [f"{folder.name}: {line}" for line in sorted(lines)]
    return found


def _files(folder: Path) -> Iterator[str]:
    for place in OVERLAID:
        upper = layers(folder, place)[0]
        for path in sorted(upper.rglob("*")):
            name = Path(place) / path.relative_to(upper)
            if str(name) not in BACKUPS and _differs(path, name):
                yield f"file {name}"
    yield from (f"file /root/{path.relative_to(folder / 'root')}" for path in sorted((folder / "root").rglob("*")))


def _differs(path: Path, below: Path) -> bool:
    """Whether what an overlay holds is other than what it covers; a directory's own time is no difference."""
    own = path.lstat()
    try:
        covered = below.lstat()
    except FileNotFoundError:
        return not _whiteout(own)
    if (own.st_mode, own.st_uid, own.st_gid) != (covered.st_mode, covered.st_uid, covered.st_gid):
        return True
    if stat.S_ISREG(own.st_mode):
        return path.read_bytes() != below.read_bytes()
    return stat.S_ISLNK(own.st_mode) and os.readlink(path) != os.readlink(below)


def _whiteout(found: os.stat_result) -> bool:
    """What stands for a file that was removed: a character device 0, 0."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def _processes(name: str) -> Iterator[str]:
    for words in hosts.processes([network.namespace(name)]).values():
        if "simulated_rack.host_init" not in words and not words.startswith("sshd:"):
            yield f"process {words}"


def _network(name: str) -> Iterator[str]:
    """Devices with their settings, qdiscs and the node's TCP sysctls, as the kernel prints them."""
    inside = ["ip", "netns", "exec", network.namespace(name)]
    for line in run(["ip", "-n", network.namespace(name), "-o", "addr", "show"]).splitlines():
        yield "address " + " ".join(line.split())
    for line in run(["ip", "-n", network.namespace(name), "-o", "link", "show"]).splitlines():
        yield "link " + " ".join(line.split())
    for line in run(["tc", "-n", network.namespace(name), "qdisc", "show"]).splitlines():
        yield f"qdisc {line.strip()}"
    for line in run([*inside, "sysctl", "-a", "--pattern", r"^net\.ipv4\.tcp_"]).splitlines():
        if line.partition(" ")[0] not in _SHARED:
            yield f"sysctl {line.strip()}"
