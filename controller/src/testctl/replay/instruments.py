# SPDX-License-Identifier: Apache-2.0
"""More instruments for a point of the lab than its plan asks for.  None of them may change a packet."""

from __future__ import annotations

from dataclasses import dataclass, replace

from testctl_agent.spec.types import Value

from testctl.core.point import Point, PointSpec
from testctl.testbeds.lab import LabTestbed
from testctl.testbeds.network import HOST_DEVICE
from testctl.testbeds.point_spec import port_list

WHOLE_BYTES = 262144
"""Above the size of every packet, merged ones included."""


@dataclass(frozen=True)
class Instruments:
    """Instruments of every host: captures of whole packets, all TCP events; the kernel's log and tracepoints."""

    packets: bool = False
    events: bool = False
    kernel_log: bool = False
    trace: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        names = {"whole packets": self.packets, "every TCP event": self.events, "kernel log": self.kernel_log}
        return [name for name, on in names.items() if on] + [f"tracepoints {event}" for event in self.trace]

    def added(self, spec: PointSpec) -> PointSpec:
        """A lab's point with these instruments."""
        ports = port_list(flow.server_port for flow in spec.flows)
        collect = {name: dict(collectors) for name, collectors in spec.collect.items()}
        given: dict[str, Value] = {"device": HOST_DEVICE, "ports": ports}
        for host in spec.topology.hosts:
            if self.packets:
                collect[host]["capture"] = {**collect[host].get("capture", given), "snap_bytes": WHOLE_BYTES}
            if self.events:
                collect[host].setdefault("tcp_events", given)
        return replace(spec, collect=collect, kernel_log=self.kernel_log, trace=self.trace)


@dataclass(frozen=True)
class InstrumentedLab(LabTestbed):
    """The lab with instruments; the code key distinguishes its points from those of a run."""

    instruments: Instruments = Instruments()

    @classmethod
    def of(cls, lab: LabTestbed, instruments: Instruments) -> InstrumentedLab:
        return cls(**vars(lab) | {"prepare": instruments.added}, instruments=instruments)

    def code_key(self, point: Point) -> str:
        return "+".join([super().code_key(point), *self.instruments.words])
