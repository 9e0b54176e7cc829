# SPDX-License-Identifier: Apache-2.0
"""More instruments for a point of the lab than its plan asks for.  None of them may change a packet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testctl.lab import memory
from testctl.plan import Point
from testctl.testbeds.lab import LabTestbed
from testctl.testbeds.point_spec import job, port_list

KERNEL_LOG = "kernel.log"
WHOLE_BYTES = 262144
"""More than any packet has, merged ones too."""


@dataclass(frozen=True)
class Instruments:
    """What is attached to every host: captures of whole packets, every TCP event; and the kernel's log."""

    packets: bool = False
    events: bool = False
    kernel_log: bool = False

    @property
    def words(self) -> list[str]:
        names = {"whole packets": self.packets, "every TCP event": self.events, "kernel log": self.kernel_log}
        return [name for name, on in names.items() if on]

    def added(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """A lab's job with them in it."""
        hosts = asked["topology"]["hosts"]
        ports = port_list(flow["server_port"] for flow in asked["flows"])
        collect = {name: dict(collectors) for name, collectors in asked["collect"].items()}
        for host in hosts:
            if self.packets:
                given = collect[host].get("capture", {"device": "eth0", "ports": ports})
                collect[host]["capture"] = {**given, "snap_bytes": WHOLE_BYTES}
            if self.events:
                collect[host].setdefault("tcp_events", {"device": "eth0", "ports": ports})
        return {**asked, "collect": collect, "kernel_log": self.kernel_log}


@dataclass(frozen=True)
class InstrumentedLab:
    """The lab with instruments; its points are told by their code key from those of a run."""

    lab: LabTestbed
    instruments: Instruments

    def code_key(self, point: Point) -> str:
        return "+".join([self.lab.code_key(point), *self.instruments.words])

    def run(self, point: Point, workdir: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """(what was asked, the outcome); raw files lie below workdir, the kernel's log too."""
        asked = memory.with_rings(self.instruments.added(job(point)))
        return asked, self.lab.run_asked(point, asked, workdir)
