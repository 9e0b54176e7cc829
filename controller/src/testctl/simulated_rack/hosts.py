# SPDX-License-Identifier: Apache-2.0
"""A room's files and its SSH server, from outside; room.py is the inside."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

from testctl.simulated_rack.host_init import CONFIG, OVERLAID, SSHD, layers
from testctl.simulated_rack.plan import Rack, Room
from testctl.system.subprocesses import run, start

_CONFIG = """\
Port 22
ListenAddress {address}
HostKey /etc/ssh/rack_host_key
PidFile /run/sshd.pid
AuthorizedKeysFile /etc/ssh/rack_authorized_keys
AllowUsers root
AuthenticationMethods publickey
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
AllowTcpForwarding no
X11Forwarding no
PrintMotd no
MaxStartups 32
Subsystem sftp internal-sftp
"""
_READY_S = 20.0


def furnish(rack: Rack) -> None:
    """Directories, the rack's SSH key, every room's host key and configuration."""
    if not Path(SSHD).exists():
        raise TestbedError(f"rack: {SSHD} is missing (Debian: apt install openssh-server)")
    ssh = rack.state / "ssh"
    ssh.mkdir(parents=True)
    key = ssh / "id"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "testctl rack", "-f", str(key)])
    known = []
    for room in rack.rooms:
        for place in OVERLAID:
            for folder in layers(rack.room_dir(room), place):
                folder.mkdir(parents=True)
        (rack.room_dir(room) / "root").mkdir(mode=0o700)
        etc = layers(rack.room_dir(room), "/etc")[0] / "ssh"
        etc.mkdir()
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", room.name, "-f", str(etc / "rack_host_key")])
        (etc / Path(CONFIG).name).write_text(_CONFIG.format(address=room.management), encoding="utf-8")
        (etc / "rack_authorized_keys").write_bytes(key.with_suffix(".pub").read_bytes())
        known.append(f"{room.management} {(etc / 'rack_host_key.pub').read_text(encoding='utf-8')}")
    (ssh / "known_hosts").write_text("".join(known), encoding="utf-8")


def open_all(rack: Rack) -> None:
    """Start every room; returns when each answers SSH.  Raises TestbedError with the room's own words."""
    for room in rack.rooms:
        start(
            ["nsenter", f"--net=/run/netns/{room.namespace}", "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork",
             "--mount-proc", "--kill-child", "--", sys.executable, "-m", "testctl.simulated_rack.host_init", room.name,
             str(rack.room_dir(room))],
            log=rack.room_dir(room) / "log", env=os.environ,
        )  # fmt: skip
    for room in rack.rooms:
        _await(rack, room)


def _await(rack: Rack, room: Room) -> None:
    end = time.monotonic() + _READY_S
    while time.monotonic() < end:
        try:
            with socket.create_connection((room.management, 22), 1.0) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            time.sleep(0.05)
    said = (rack.room_dir(room) / "log").read_text(encoding="utf-8").strip() or "nothing"
    raise TestbedError(f"rack, {room.name}: no SSH server at {room.management} within {_READY_S:g} s; it said: {said}")


def processes(namespaces: list[str]) -> dict[int, str]:
    """What runs in network namespaces, by process number."""
    pids = [int(word) for name in namespaces for word in run(["ip", "netns", "pids", name]).split()]
    return {pid: command(pid) for pid in pids}


def command(pid: int) -> str:
    """The words of a process; "" when it has none, or is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def close_all(namespaces: list[str]) -> None:
    """End every process of the rooms; returns when none is left.  Raises TestbedError."""
    end = time.monotonic() + _READY_S
    while left := processes(namespaces):
        if time.monotonic() > end:
            raise TestbedError(f"rack: processes do not end: {left}")
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
