# SPDX-License-Identifier: Apache-2.0
"""Gives a switch the start of the traffic, from which the times of its links that change count.

It records nothing.  The program is identified by its filter on the switch's devices.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.bpf import load
from testctl_agent.collect.telemetry import clock_offset_ns
from testctl_agent.generators._options import need
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.switch import ebpf_links, ebpf_ports
from testctl_agent.tasks.task import Result, Task

NAME = "link_origin"


@dataclass
class LinkOrigin(Task):
    """A Task without a program.  start_ns: CLOCK_REALTIME."""

    device: str
    start_ns: int
    _given: int = 0

    def start(self) -> None:
        with ebpf_ports.attached(self.device) as maps:
            if maps is None:
                raise TestbedError(f"{NAME}: device {self.device}: the switch's program is not there")
            self._given = self.start_ns - clock_offset_ns()
            load.write_array(maps[ebpf_links.ORIGIN], struct.pack("=Q", self._given))

    def poll(self) -> bool:
        return True

    def stop(self) -> None:
        """What it wrote stays until the next start."""

    def result(self) -> Result:
        return {"origin_ns": self._given}


def task(options: Mapping[str, Value], workdir: Path) -> LinkOrigin:
    """Options: devices ("a,b"), start_ns."""
    return LinkOrigin(str(need(options, "devices", NAME)).partition(",")[0], int(need(options, "start_ns", NAME)))
