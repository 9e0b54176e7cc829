# SPDX-License-Identifier: Apache-2.0
"""A capture of the headers of every TCP packet at a device, or of all packets: in a lab by its kernel, elsewhere by
tcpdump."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.system.subprocesses import which
from testctl_agent.tasks.lab_recorder import LabRecorder
from testctl_agent.tasks.task import Announcement, ProgramTask, Result, Task

NAME = "capture"
FILE = "capture.pcap"
LAB_FILE = Path("/proc/testctl_capture")
"""In a lab: the kernel's own recorder of frames (lab/kernel/lab_capture.c)."""
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


def unavailable() -> str:
    """Why this collector is not available; "" if it is."""
    if LAB_FILE.exists() or which("tcpdump"):
        return ""
    return "tcpdump is not installed: apt-get install tcpdump"


def argv(options: Mapping[str, Value]) -> list[str]:
    """The command, which writes to its standard output.  options: device (eth0), snap_bytes, ring_kib, and
    packets: "tcp", or "all"

    tcpdump changes the owner of a file that it opens itself to its own user.  In a lab the file system has the
    rights of the user who started it, who may not change a file's owner, not even to the lab's root.
    """
    device, snap_bytes, which = _what(options)
    return [
        "tcpdump", "-i", device, "-n", "-s", str(snap_bytes), "-B", str(int(options.get("ring_kib", RING_KIB))),
        "--time-stamp-precision=nano", "-Z", "root", "-w", "-", *([] if which == "all" else ["tcp"]),
    ]  # fmt: skip


def _what(options: Mapping[str, Value]) -> tuple[str, int, str]:
    """The device, the bytes of a packet that are kept, and "tcp" or "all"."""
    which = "all" if options.get("packets") == "all" else "tcp"
    return str(options.get("device", "eth0")), int(options.get("snap_bytes", SNAP_BYTES)), which


def counts(printed: str, device: str) -> Result:
    """{"captured", "received", "dropped"} from tcpdump's last messages.  Raises as whole()."""
    numbers = {}
    for name, pattern in _COUNTS.items():
        matches = pattern.findall(printed)
        if not matches:
            raise TestbedError(f"capture: tcpdump did not say how many packets were {name}: {printed}")
        numbers[name] = int(matches[-1])
    return whole(numbers, device)


def whole(numbers: Mapping[str, int], device: str) -> Result:
    """{"captured", "received", "dropped"} of a capture.  Raises TestbedError unless all packets were written.

    At lo each packet is received twice, outgoing and incoming, and captured once.
    """
    if numbers["dropped"]:
        raise TestbedError(f"capture: {numbers['dropped']} of {numbers['received']} packets were dropped by the kernel")
    if numbers["captured"] < numbers["received"] and device != "lo":
        raise TestbedError(f"capture: {numbers['captured']} of {numbers['received']} packets were written")
    return {name: numbers[name] for name in _COUNTS}


def task(options: Mapping[str, Value], workdir: Path) -> Task:
    device, snap_bytes, which = _what(options)
    if LAB_FILE.exists():
        arguments = (device, str(snap_bytes), which)
        return LabRecorder(NAME, LAB_FILE, arguments, workdir, FILE, lambda numbers: whole(numbers, device))
    if why := unavailable():
        raise TestbedError(f"capture: {why}")

    def read(code: int, printed: str) -> Result:
        if code != 0:
            raise TestbedError(f"capture: tcpdump: exit {code}: {printed or 'no output'}")
        return counts(printed, device)

    return ProgramTask(
        name=NAME, argv=argv(options), workdir=workdir, read=read, outputs=(FILE,),
        announcement=Announcement("stderr", "listening on"), settle_s=HANDED_OVER_S, stdout=FILE,
    )  # fmt: skip
