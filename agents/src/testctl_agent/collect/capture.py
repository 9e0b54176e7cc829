# SPDX-License-Identifier: Apache-2.0
"""A capture of the headers of every TCP packet at a device, or of all packets, by tcpdump."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.system.subprocesses import found_in_path
from testctl_agent.tasks.task import Announcement, ProgramTask, Result

NAME = "capture"
FILE = "capture.pcap"
SNAP_BYTES = 128
"""Ethernet, IPv6 and the longest TCP header are 114 bytes."""
RING_KIB = 32 * 1024
"""The packets of about 2 s at 1 Gb/s, for a machine that does not always run tcpdump at once."""
HANDED_OVER_S = 1.1
"""The kernel passes packets to tcpdump when a block is full, or a second later; packets that are not
passed when tcpdump is stopped are lost."""
_COUNTS = {
    "captured": re.compile(r"([0-9]+) packets? captured"),
    "received": re.compile(r"([0-9]+) packets? received by filter"),
    "dropped": re.compile(r"([0-9]+) packets? dropped by kernel"),
}


def files(options: Mapping[str, Value]) -> list[str]:
    return [FILE]


def unavailable() -> str:
    """Why this collector is not available; "" if it is."""
    return "" if found_in_path("tcpdump") else "tcpdump is not installed: apt-get install tcpdump"


def argv(options: Mapping[str, Value]) -> list[str]:
    """The command, which writes to its standard output.  options: device (eth0), snap_bytes, ring_kib, and
    packets: "tcp", or "all"

    tcpdump changes the owner of a file that it opens itself to its own user.  In a lab the file system has the
    rights of the user who started it, who may not change a file's owner, not even to the lab's root.
    """
    snap_bytes, ring_kib = int(options.get("snap_bytes", SNAP_BYTES)), int(options.get("ring_kib", RING_KIB))
    return [
        "tcpdump", "-i", str(options.get("device", "eth0")), "-n", "-s", str(snap_bytes), "-B", str(ring_kib),
        "--time-stamp-precision=nano", "-Z", "root", "-w", "-", *([] if options.get("packets") == "all" else ["tcp"]),
    ]  # fmt: skip


def counts(printed: str, device: str) -> Result:
    """{"captured", "received", "dropped"} from tcpdump's last messages.  Raises TestbedError unless all packets were
    written.

    At lo each packet is received twice, outgoing and incoming, and captured once.
    """
    found = {}
    for name, pattern in _COUNTS.items():
        numbers = pattern.findall(printed)
        if not numbers:
            raise TestbedError(f"capture: tcpdump did not say how many packets were {name}: {printed}")
        found[name] = int(numbers[-1])
    if found["dropped"]:
        raise TestbedError(f"capture: {found['dropped']} of {found['received']} packets were dropped by the kernel")
    if found["captured"] < found["received"] and device != "lo":
        raise TestbedError(f"capture: {found['captured']} of {found['received']} packets were written")
    return dict(found)


def task(options: Mapping[str, Value], workdir: Path) -> ProgramTask:
    if why := unavailable():
        raise TestbedError(f"capture: {why}")

    def read(code: int, printed: str) -> Result:
        if code != 0:
            raise TestbedError(f"capture: tcpdump: exit {code}: {printed or 'no output'}")
        return counts(printed, str(options.get("device", "eth0")))

    return ProgramTask(
        name=NAME, argv=argv(options), workdir=workdir, read=read, outputs=files(options),
        announcement=Announcement("stderr", "listening on"), settle_s=HANDED_OVER_S, stdout=FILE,
    )  # fmt: skip
