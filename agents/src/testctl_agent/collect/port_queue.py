# SPDX-License-Identifier: Apache-2.0
"""What became of each packet at the ports of a switch that have an AQM: rows of the lab's kernel
(lab/kernel/lab_port.c), which complete the switch's telemetry.

It does not know yet when a packet arrives, when it leaves, and whether.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from testctl_agent.generators._options import need
from testctl_agent.network import netlink
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.tasks.lab_recorder import LabRecorder
from testctl_agent.tasks.task import Result

NAME = "port_queue"
FILE = "port_queue.bin"
LAB_FILE = Path("/proc/testctl_port")


def task(options: Mapping[str, Value], workdir: Path) -> LabRecorder:
    """Options: devices ("a,b"), the switch's in the order of its ports."""
    devices = str(need(options, "devices", NAME)).split(",")
    ports = {str(netlink.index(device)): number for number, device in enumerate(devices, 1)}

    def read(counts: Mapping[str, int]) -> Result:
        if counts["dropped"]:
            raise TestbedError(f"{NAME}: {counts['dropped']} rows could not be written")
        return {"ports": ports, "dropped": counts["dropped"]}

    return LabRecorder(NAME, LAB_FILE, (), workdir, FILE, read)
