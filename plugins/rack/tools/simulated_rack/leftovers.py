# SPDX-License-Identifier: Apache-2.0
"""What of a rack can be seen on the machine, for comparing before with after."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from simulated_rack import hosts, network
from simulated_rack.plan import PREFIX

_FILES = (
    "/etc/testctl", "/opt/testctl-agent", "/var/lib/testctl", "/var/log/testctl", "/run/testctl-agent.pid",
    "/etc/systemd/system/testctl-agent.service", "/root/.ansible",
)  # fmt: skip
Seen = dict[str, list[str]]


def seen(state: Path, inodes: Iterable[int] = ()) -> Seen:
    """Processes, namespaces, devices, mounts, users and files that a rack or a deployment makes, by kind.

    inodes: of network namespaces whose processes are the rack's, with those that still have a name
    """
    known = {*inodes, *net_inodes()}
    return {
        "processes": [
            f"{pid} {hosts.command(pid)}"
            for pid in _pids()
            if hosts.net_inode(pid) in known or str(state) in hosts.command(pid)
        ],
        "namespaces": network.namespaces(),
        "devices": network.devices(),
        "mounts": [point for point in _mounts() if str(state) in point or f"/{PREFIX}" in point],
        "users": [line for line in _lines(Path("/etc/passwd")) if line.startswith("testctl:")],
        "files": [name for name in (*_FILES, str(state)) if Path(name).exists()],
    }


def net_inodes() -> set[int]:
    """The numbers of the rack's network namespaces."""
    return {(Path("/run/netns") / name).stat().st_ino for name in network.namespaces()}


def differences(before: Seen, after: Seen) -> list[str]:
    """What is there and was not, or was there and is not: "devices: + rack-alpha"."""
    return [
        f"{kind}: {sign} {one}"
        for kind in before
        for sign, these, others in (("+", after[kind], before[kind]), ("-", before[kind], after[kind]))
        for one in these
        if one not in others
    ]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _mounts() -> list[str]:
    return [line.split()[4] for line in _lines(Path("/proc/self/mountinfo"))]


def _pids() -> list[int]:
    own = {os.getpid(), os.getppid()}
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if int(path.name) not in own]
