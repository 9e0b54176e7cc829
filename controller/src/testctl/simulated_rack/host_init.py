# SPDX-License-Identifier: Apache-2.0
"""The first process of a room: makes the file system its own, then becomes the SSH server.

Started as root in new mount, PID, UTS and IPC namespaces and the room's network namespace, with /proc mounted:
    python -m testctl.simulated_rack.host_init NAME DIR
What a host would write below the directories of OVERLAID goes to DIR (overlays over the machine's); /root is
DIR/root, /run and /tmp are in memory, and /sys shows the room's devices.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from testctl_agent.spec.errors import TestctlError

from testctl.system.subprocesses import run

OVERLAID = ("/etc", "/opt", "/usr/local", "/var", "/home", "/srv")
CONFIG = "/etc/ssh/rack_sshd_config"
SSHD = "/usr/sbin/sshd"


def layers(room_dir: Path, place: str) -> tuple[Path, Path]:
    """Where an overlay over `place` keeps what differs, and its own notes."""
    folder = room_dir / place.strip("/").replace("/", "-")
    return folder / "upper", folder / "work"


def _mount(*words: str) -> None:
    run(["mount", *words])


def enter(name: str, room_dir: Path) -> None:
    """Make this process's view that of the room.  Raises TestbedError."""
    _mount("--make-rprivate", "/")
    for place in OVERLAID:
        upper, work = layers(room_dir, place)
        _mount("-t", "overlay", "-o", f"lowerdir={place},upperdir={upper},workdir={work}", f"rack-{name}", place)
    _mount("--bind", str(room_dir / "root"), "/root")
    _mount("-t", "sysfs", "sysfs", "/sys")
    _mount("-t", "bpf", "bpf", "/sys/fs/bpf")
    _mount("-t", "tracefs", "tracefs", "/sys/kernel/tracing")
    _mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp")
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for folder, mode in (("sshd", 0o755), ("lock", 0o1777)):
        (Path("/run") / folder).mkdir()
        (Path("/run") / folder).chmod(mode)
    socket.sethostname(name)


def main() -> None:
    name, room_dir = sys.argv[1], Path(sys.argv[2])
    try:
        enter(name, room_dir)
    except TestctlError as error:
        print(f"rack, {name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    os.chdir("/")
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    os.execve(SSHD, [SSHD, "-D", "-e", "-f", CONFIG], environment)


if __name__ == "__main__":
    main()
