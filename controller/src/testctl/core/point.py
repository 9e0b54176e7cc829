# SPDX-License-Identifier: Apache-2.0
"""A point of a plan, and its form for a testbed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from testctl_agent.params.flow.socket import IPV4
from testctl_agent.spec import workload
from testctl_agent.spec.flows import MAX_CONNECTIONS
from testctl_agent.spec.types import Value
from testctl_agent.spec.untrusted import Named, misfit

from testctl.core.temporal import Temporal
from testctl.core.topology import Topology

Settings = Mapping[str, Mapping[str, Value]]
"""entity -> {parameter: value}, in base units"""

POINT_WIDE = "*"
"""In place of a flow: of the point as a whole."""

VALUE = (int, str, bool, float)
FLOW = {
    "name": str,
    "from": str,
    "to": str,
    "generator?": str,
    "server_port?": int,
    "client_port?": int,
    "parallel?": int,
    "options?": Named(VALUE),
    "start_ns?": int,
    "duration_ns?": int,
}
POINT = {
    "id?": str,
    "tuples?": [[object, object, object]],
    "settings?": Named(Named(VALUE)),
    "flows?": [FLOW],
    "duration_ns?": int,
    "seed?": int,
    "repeat?": int,
    "state?": Named(Named(VALUE)),
    "collect?": Named(Named(Named(VALUE))),
    "limit_ns?": int,
    "kernel?": str,
    "backend?": str,
    "kernel_log?": bool,
    "trace?": [str],
    "parts?": [{"kernel": str, "entities": [str]}],
}


@dataclass(frozen=True)
class PointFlow:
    """Traffic from one host to another: `parallel` connections, from client_port on, to server_port.

    options  of the generator, in base units
    """

    name: str
    source: str
    sink: str
    generator: str = "tgen"
    server_port: int = 0
    client_port: int = 0
    parallel: int = 1
    options: Mapping[str, Value] = field(default_factory=dict)

    @property
    def ends(self) -> tuple[str, str]:
        return self.source, self.sink

    @property
    def reversed(self) -> bool:
        """Whether most data goes from `to` to `from`."""
        return bool(self.options.get("reverse"))

    @property
    def family(self) -> int:
        """The version of IP, 4 or 6."""
        return int(self.options.get("family") or IPV4)

    @property
    def asks(self) -> bool:
        return workload.asks(self.options)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "from": self.source,
            "to": self.sink,
            "generator": self.generator,
            "server_port": self.server_port,
            "client_port": self.client_port,
            "parallel": self.parallel,
            "options": dict(self.options),
        }


@dataclass(frozen=True)
class TimedFlow(PointFlow):
    """A flow with its times, which are removed from its options.

    start_ns     after the point's T0
    duration_ns  0: until its bytes are sent or its schedule ends
    """

    start_ns: int = 0
    duration_ns: int = 0

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"start_ns": self.start_ns, "duration_ns": self.duration_ns}


@dataclass(frozen=True)
class Point:
    """One test.

    id           12 hex digits of a hash over what determines the point
    tuples       (entity, parameter, value) as written, each with one value
    settings     of hosts, switches and ports
    duration_ns  nominal end of the last flow
    levels       index of the value of each tuple (not part of the identity, and not in JSON)
    conditions   what its plan expects over the trace (likewise)
    """

    id: str
    tuples: tuple[tuple[str, str, str], ...] = ()
    settings: Settings = field(default_factory=dict)
    flows: tuple[PointFlow, ...] = ()
    topology: Topology = field(default_factory=Topology)
    duration_ns: int = 0
    seed: int = 1
    repeat: int = 0
    levels: tuple[int, ...] = ()
    conditions: tuple[Temporal, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "tuples": [list(item) for item in self.tuples],
            "settings": _copied(self.settings),
            "flows": [flow.to_json() for flow in self.flows],
            "topology": self.topology.to_json(),
            "duration_ns": self.duration_ns,
            "seed": self.seed,
            "repeat": self.repeat,
        }


@dataclass(frozen=True)
class Part:
    """The entities that share a kernel, and its name."""

    kernel: str
    entities: tuple[str, ...]


_QUEUES = ("rate", "htb", "tbf", "qdisc")
"""How the parameters begin that give a host a queue."""


@dataclass(frozen=True)
class PointSpec(Point):
    """A point for a testbed: its settings split by who applies them.

    state       what agents apply, and restore
    collect     entity -> {collector: options}
    limit_ns    how long a flow without a duration may take
    kernel      the name of the kernel; of the running one its release
    backend     of the switches
    kernel_log  keep the kernel's log
    trace       tracepoints of the kernel to record, such as tcp:*
    parts       the kernels and who is on each, where there are several; else ()
    """

    flows: tuple[TimedFlow, ...] = ()
    state: Settings = field(default_factory=dict)
    collect: Mapping[str, Mapping[str, Mapping[str, Value]]] = field(default_factory=dict)
    limit_ns: int = 0
    kernel: str = ""
    backend: str = ""
    kernel_log: bool = False
    trace: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def counts_coverage(self) -> bool:
        """Whether its kernel is the variant that counts what it executes."""
        return self.kernel.endswith("-coverage")

    def kernel_of(self, entity: str) -> str:
        return next((part.kernel for part in self.parts if entity in part.entities), self.kernel)

    def release_of(self, host: str) -> tuple[int, int]:
        """The release of a host's kernel, such as (6, 12), also of 6.12-coverage; (99, 0): not known, the latest is
        assumed."""
        release = re.match(r"(\d+)\.(\d+)(?![\w])", str(self.settings.get(host, {}).get("kernel", self.kernel)))
        return (int(release[1]), int(release[2])) if release else (99, 0)

    def flow(self, name: str) -> TimedFlow | None:
        return next((flow for flow in self.flows if flow.name == name), None)

    def host_queue(self, host: str) -> str:
        """The parameter that gives a host a queue, in which what TCP sent waits; "": it leaves at once."""
        queues = (name for name in self.settings.get(host, {}) if name.partition("_")[0] in _QUEUES)
        return min(queues, default="")

    def end_ns(self, flow: TimedFlow) -> int:
        """Latest end of a flow, after the point's T0."""
        return flow.start_ns + (flow.duration_ns or self.limit_ns)

    def to_json(self) -> dict[str, Any]:
        return (
            super().to_json()
            | {
                "state": _copied(self.state),
                "collect": {entity: _copied(collectors) for entity, collectors in self.collect.items()},
                "limit_ns": self.limit_ns,
                "kernel": self.kernel,
                "backend": self.backend,
            }
            | ({"kernel_log": True} if self.kernel_log else {})
            | ({"trace": list(self.trace)} if self.trace else {})
            | ({"parts": [asdict(part) for part in self.parts]} if self.parts else {})
        )

    @classmethod
    def from_json(cls, raw: Any) -> PointSpec:
        """The inverse of to_json, of a Point too; missing parts are empty.  Raises ValueError.

        `levels` and `conditions` are not in JSON.
        """
        if why := misfit(raw, POINT):
            raise ValueError(f"point: {why}")
        return cls(
            id=raw.get("id", ""),
            tuples=tuple((str(entity), str(param), str(value)) for entity, param, value in raw.get("tuples", ())),
            flows=tuple(_flow(flow) for flow in raw.get("flows", ())),
            topology=Topology.from_json(raw.get("topology", {})),
            trace=tuple(raw.get("trace", ())),
            parts=tuple(Part(part["kernel"], tuple(part["entities"])) for part in raw.get("parts", ())),
            **{name: raw[name] for name in _AS_THEY_ARE if name in raw},
        )


_AS_THEY_ARE = (
    "settings", "duration_ns", "seed", "repeat", "state", "collect", "limit_ns", "kernel", "backend", "kernel_log",
)  # fmt: skip


_BACKGROUND = re.compile(r"background[0-9]+")


def is_background(flow: str) -> bool:
    """Whether a flow is a port's background traffic, by its name."""
    return bool(_BACKGROUND.fullmatch(flow))


def numbered_flows(flows: Sequence[PointFlow]) -> tuple[PointFlow, ...]:
    """Flows whose connections get a number in the switch: all, or only those without requests if there are more
    connections than numbers."""
    if sum(flow.parallel for flow in flows) <= MAX_CONNECTIONS:
        return tuple(flows)
    return tuple(flow for flow in flows if not flow.asks)


def _flow(raw: Mapping[str, Any]) -> TimedFlow:
    rest = ("name", "generator", "server_port", "client_port", "parallel", "options", "start_ns", "duration_ns")
    return TimedFlow(source=raw["from"], sink=raw["to"], **{name: raw[name] for name in rest if name in raw})


def _copied(settings: Settings) -> dict[str, dict[str, Value]]:
    return {entity: dict(values) for entity, values in settings.items()}
