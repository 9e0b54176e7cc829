# SPDX-License-Identifier: Apache-2.0
"""Init of a simulated node: mounts its overlays, then executes sshd.

Started as root in new mount, PID, UTS and IPC namespaces and the node's network namespace, with /proc mounted:
    python -m simulated_rack.host_init NAME DIR
What a host would write below the directories of OVERLAID goes to DIR (overlays over the machine's); /root is
DIR/root, /run and /tmp are in memory, and /sys shows the node's devices.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from testctl.system.subprocesses import run
from testctl_agent.spec.errors import TestctlError

OVERLAID = ("/etc", "/opt", "/usr/local", "/var", "/home", "/srv")
CONFIG = "/etc/ssh/rack_sshd_config"
SSHD = "/usr/sbin/sshd"


def layers(node_dir: Path, place: str) -> tuple[Path, Path]:
    """Where an overlay over `place` keeps what differs, and its own notes."""
    folder = node_dir / place.strip("/").replace("/", "-")
    return folder / "upper", folder / "work"


def _mount(*words: str) -> None:
    run(["mount", *words])


def enter(name: str, node_dir: Path) -> None:
    """Mount what the node sees, and set its name.  Raises TestbedError."""
    _mount("--make-rprivate", "/")
    for place in OVERLAID:
        upper, work = layers(node_dir, place)
        _mount("-t", "overlay", "-o", f"lowerdir={place},upperdir={upper},workdir={work}", f"rack-{name}", place)
    _mount("--bind", str(node_dir / "root"), "/root")
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
    name, node_dir = sys.argv[1], Path(sys.argv[2])
    try:
        enter(name, node_dir)
    except TestctlError as error:
        print(f"rack, {name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    os.chdir("/")
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    os.execve(SSHD, [SSHD, "-D", "-e", "-f", CONFIG], environment)


if __name__ == "__main__":
    main()
