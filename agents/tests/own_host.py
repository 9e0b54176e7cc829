# SPDX-License-Identifier: Apache-2.0
"""For scripts that run as root in network and mount namespaces of their own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testctl_agent.system.namespace import join


def run(command: str) -> None:
    subprocess.run(command.split(), check=True)


def with_eth0() -> None:
    """The namespace's own /sys, and a device eth0, 10.0.0.1, whose other end is here too."""
    run("mount -t sysfs sys /sys")
    run("ip link add eth0 type veth peer name far")
    for command in ("addr add 10.0.0.1/16 dev eth0", "link set far up", "link set eth0 up", "link set lo up"):
        run(f"ip {command}")


def entered(pid: int) -> None:
    """Wait until a process that was started by unshare is in its own network namespace."""
    while os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        time.sleep(0.01)


@contextmanager
def another() -> Iterator[int]:
    """Another network namespace, which is gone afterwards; the id of the process that holds it."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    try:
        entered(holder.pid)
        yield holder.pid
    finally:
        holder.kill()
        holder.wait()


@contextmanager
def within(pid: int) -> Iterator[None]:
    """This thread in the network namespace of a process."""
    with open("/proc/thread-self/ns/net") as own:
        join(Path(f"/proc/{pid}/ns/net"))
        try:
            yield
        finally:
            join(Path(f"/proc/self/fd/{own.fileno()}"))
