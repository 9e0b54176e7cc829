# SPDX-License-Identifier: Apache-2.0
"""A node's files and its SSH server, from outside; host_init.py is the inside."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from testctl.system.subprocesses import run, start
from testctl_agent.spec.errors import TestbedError

from simulated_rack.host_init import CONFIG, OVERLAID, SSHD, layers
from simulated_rack.plan import Node, SimulatedRack

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


def furnish(rack: SimulatedRack) -> None:
    """Directories, the rack's SSH key, every node's host key and configuration."""
    if not Path(SSHD).exists():
        raise TestbedError(f"rack: {SSHD} is missing (Debian: apt install openssh-server)")
    ssh = rack.state / "ssh"
    ssh.mkdir(parents=True)
    key = ssh / "id"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "testctl rack", "-f", str(key)])
    known = []
    for node in rack.nodes:
        for place in OVERLAID:
            for folder in layers(rack.node_dir(node), place):
                folder.mkdir(parents=True)
        (rack.node_dir(node) / "root").mkdir(mode=0o700)
        etc = layers(rack.node_dir(node), "/etc")[0] / "ssh"
        etc.mkdir()
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", node.name, "-f", str(etc / "rack_host_key")])
        (etc / Path(CONFIG).name).write_text(_CONFIG.format(address=node.management), encoding="utf-8")
        (etc / "rack_authorized_keys").write_bytes(key.with_suffix(".pub").read_bytes())
        known.append(f"{node.management} {(etc / 'rack_host_key.pub').read_text(encoding='utf-8')}")
    (ssh / "known_hosts").write_text("".join(known), encoding="utf-8")


def open_all(rack: SimulatedRack) -> None:
    """Start every node; returns when each answers SSH.  Raises TestbedError with the node's own words."""
    for node in rack.nodes:
        start(
            ["nsenter", f"--net=/run/netns/{node.namespace}", "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork",
             "--mount-proc", "--kill-child", "--", sys.executable, "-m", "simulated_rack.host_init", node.name,
             str(rack.node_dir(node))],
            log=rack.node_dir(node) / "log", env=os.environ,
        )  # fmt: skip
    for node in rack.nodes:
        _await(rack, node)


def _await(rack: SimulatedRack, node: Node) -> None:
    end = time.monotonic() + _READY_S
    while time.monotonic() < end:
        try:
            with socket.create_connection((node.management, 22), 1.0) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            time.sleep(0.05)
    said = (rack.node_dir(node) / "log").read_text(encoding="utf-8").strip() or "nothing"
    raise TestbedError(f"rack, {node.name}: no SSH server at {node.management} within {_READY_S:g} s; its log: {said}")


def processes(namespaces: list[str]) -> dict[int, str]:
    """What runs in network namespaces, by process number."""
    pids = [int(word) for name in namespaces for word in run(["ip", "netns", "pids", name]).split()]
    return running(pids)


def running(pids: Iterable[int]) -> dict[int, str]:
    """The words of those processes that have not ended since they were listed."""
    found = {pid: command(pid) for pid in pids}
    return {pid: words for pid, words in found.items() if words or net_inode(pid)}


def net_inode(pid: int) -> int:
    """The number of a process's network namespace; 0 when it has ended, even if nobody has waited for it."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return 0


def command(pid: int) -> str:
    """The words of a process; "" when it has none, or is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def close_all(namespaces: list[str]) -> None:
    """End every process of the nodes; returns when none is left.  Raises TestbedError."""
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
