# SPDX-License-Identifier: Apache-2.0
"""The result of a point on a testbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from testctl_agent.spec.types import Value
from testctl_agent.spec.untrusted import Named, misfit
from testctl_agent.wire import results
from testctl_agent.wire.results import FlowEnd

from testctl.core.point import VALUE

Collected = Mapping[str, Any]
"""The result of a collector: an agent's JSON, whose shape is in wire/results.py."""

SHAPE = {
    "entities?": Named({"kind?": str, "before?": Named(VALUE), "after?": Named(VALUE)}),
    "flows?": Named({"client?": results.FLOW, "server?": results.FLOW}),
    "collected?": Named(Named(Named(object))),
    "notes?": Named((str, Named(object))),
    "addresses?": Named((str, [str])),
    "error?": (str, None),
    "skip?": str,
    "lacking?": [[str, str]],
    "drift?": [str],
    "kernel?": str,
    "kernel_faults?": [str],
    "t0_ns?": int,
    "end_ns?": int,
    "wall?": Named(float),
    "placement?": Named(str),
    "clocks?": Named({"offset_ns": int, "error_ns": float, "source?": str}),
    "unjudged?": Named(str),
}


@dataclass
class Entity:
    """A host or switch: its settings before and after the point's were applied; those of ports with the port's name."""

    kind: str = ""
    before: Mapping[str, Value] = field(default_factory=dict)
    after: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class HostClock:
    """A host's clock minus the reference clock: the true offset lies within offset_ns ± error_ns."""

    offset_ns: int
    error_ns: float
    source: str = ""


@dataclass(frozen=True)
class FlowOutcome:
    """What the two ends of a flow returned."""

    client: FlowEnd = field(default_factory=FlowEnd)
    server: FlowEnd = field(default_factory=FlowEnd)

    @property
    def ends(self) -> tuple[FlowEnd, FlowEnd]:
        return self.client, self.server

    @property
    def failures(self) -> tuple[str, ...]:
        """The failures of its connections (spec/failures.py), without duplicates, the client's first."""
        return tuple(dict.fromkeys(failure.failure for end in self.ends for failure in end.failures if failure.failure))


@dataclass
class Outcome:
    """What a testbed returns of a point; it is filled in while the point runs.

    collected  {entity: {collector: result}} of the collectors that completed
    notes      text for people
    addresses  of the hosts, in the captures
    error      why the point is broken; skip: why the testbed can't run it; "": it ran
    lacking    (entity, parameter or collector) that the testbed lacks
    drift      state that differs from before the point
    kernel_faults   what the lab's kernel reported of itself: warnings, oopses, reports of sanitizers
    t0_ns, end_ns   when its traffic began and ended
    wall       wall-clock times of a lab, in s
    placement  entity -> its machine, on a rack
    clocks     of hosts with separate clocks; empty if all share one
    unjudged   flow -> why no rule of TCP can be decided of it
    """

    entities: dict[str, Entity] = field(default_factory=dict)
    flows: dict[str, FlowOutcome] = field(default_factory=dict)
    collected: dict[str, dict[str, Collected]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    error: str = ""
    skip: str = ""
    lacking: list[tuple[str, str]] = field(default_factory=list)
    drift: list[str] = field(default_factory=list)
    kernel: str = ""
    kernel_faults: list[str] = field(default_factory=list)
    t0_ns: int = 0
    end_ns: int = 0
    wall: Mapping[str, float] = field(default_factory=dict)
    placement: Mapping[str, str] = field(default_factory=dict)
    clocks: Mapping[str, HostClock] = field(default_factory=dict)
    unjudged: Mapping[str, str] = field(default_factory=dict)

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.t0_ns

    def result_of(self, entity: str, collector: str) -> Collected:
        """The result of a collector; {} if it did not complete."""
        return self.collected.get(entity, {}).get(collector, {})

    def to_json(self) -> dict[str, Any]:
        """Empty optional entries are left out."""
        document: dict[str, Any] = {
            "entities": {name: asdict(entity) for name, entity in self.entities.items()},
            "flows": {
                name: {"client": flow.client.raw, "server": flow.server.raw} for name, flow in self.flows.items()
            },
            "collected": self.collected,
            "notes": self.notes,
            "addresses": dict(self.addresses),
            "error": self.error or None,
        }
        rest = (
            "skip",
            "lacking",
            "drift",
            "kernel",
            "kernel_faults",
            "t0_ns",
            "end_ns",
            "wall",
            "placement",
            "unjudged",
        )
        document |= {name: value for name in rest if (value := getattr(self, name))}
        return document | ({"clocks": {host: asdict(c) for host, c in self.clocks.items()}} if self.clocks else {})

    @classmethod
    def from_json(cls, raw: Any) -> Outcome:
        """The inverse of to_json.  Raises ValueError."""
        if why := misfit(raw, SHAPE):
            raise ValueError(f"outcome: {why}")
        collected = {entity: dict(names) for entity, names in raw.get("collected", {}).items()}
        for entity, names in collected.items():
            if wrong := next((why for name, result in names.items() if (why := results.odd(name, result))), ""):
                raise ValueError(f"outcome: collected of {entity}: {wrong}")
        return cls(
            entities={name: Entity(**_known(entity, Entity)) for name, entity in raw.get("entities", {}).items()},
            flows={
                name: FlowOutcome(**{side: FlowEnd.from_json(end) for side, end in _known(flow, FlowOutcome).items()})
                for name, flow in raw.get("flows", {}).items()
            },
            collected=collected,
            notes={key: str(said) for key, said in raw.get("notes", {}).items()},
            error=raw.get("error") or "",
            lacking=[(entity, name) for entity, name in raw.get("lacking", ())],
            clocks={host: HostClock(**_known(clock, HostClock)) for host, clock in raw.get("clocks", {}).items()},
            **{name: raw[name] for name in _AS_THEY_ARE if name in raw},
        )


_AS_THEY_ARE = (
    "addresses", "skip", "drift", "kernel", "kernel_faults", "t0_ns", "end_ns", "wall", "placement", "unjudged",
)  # fmt: skip


def _known(raw: Mapping[str, Any], of: type) -> dict[str, Any]:
    """The fields of a class in an object; later versions may have written more."""
    return {name: value for name, value in raw.items() if name in of.__dataclass_fields__}  # type: ignore[attr-defined]
