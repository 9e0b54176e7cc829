# SPDX-License-Identifier: Apache-2.0
"""When the traffic of a point begins, in virtual and in wall-clock time, and what else follows from which it is.

Light to import: in the lab this runs inside the virtual time.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from testctl_agent.spec.types import Value

from testctl.core.point import PointSpec
from testctl.testbeds.agents import Agents

LEAD_NS = 10**8
"""How long before the traffic everything is ready but the clients of its flows."""

CLIENT_NS = 2 * 10**8
"""How much sooner in virtual time, for each client beyond the first: they are started one after the other."""

FIRST_LEAD_NS, START_LEAD_NS, SLOW_LEAD_NS = 4 * 10**8, 10**8, 2 * 10**9
"""How long before the traffic the last programs are begun in wall-clock time: at least, for each of them on one
agent, and at least with another generator than tgen.  A start takes some ms."""


ANSWERS = 4
"""A host that has just booted or is emulated answers late, and starts programs later still, by this factor."""


@dataclass(frozen=True)
class Start:
    """A task to be started on an agent."""

    agent: str
    task: str
    kind: str
    name: str
    options: Mapping[str, Value]

    @property
    def samples(self) -> bool:
        """Whether it has to know T0."""
        return bool(self.options.get("interval_ns") or self.options.get("at_t0"))


Collectors = Callable[[int], Sequence[Start]]
"""The collectors of a point for a T0."""


class TrafficTime(Protocol):
    """The time in which a point's traffic passes.

    lacks_nothing  a value that can't be had is an error, not a reason to skip: a lab is built for its plans
    attests        compare what every entity is before and after the point
    punctual       a flow that begins late is another experiment
    """

    @property
    def lacks_nothing(self) -> bool: ...

    @property
    def attests(self) -> bool: ...

    @property
    def punctual(self) -> bool: ...

    def per_agent(self, agents: Agents, jobs: Sequence[tuple[str, Callable[[], None]]]) -> None:
        """Do all jobs, (agent, job) each; jobs of one agent in their order."""

    def collect(
        self, point: PointSpec, collectors: Collectors, start: Callable[[Sequence[Start]], None], answer_ns: int
    ) -> int:
        """Start the collectors; returns T0.  answer_ns: what the slowest agent took to attest."""

    def lead_ns(self, flows: int) -> int:
        """How long before T0 the clients of this number of flows are started."""


@dataclass(frozen=True)
class VirtualTime:
    """T0 is known beforehand, and everything is done in one order, which the clock depends on."""

    t0_ns: int
    lacks_nothing: bool = True
    attests: bool = False
    punctual: bool = True

    def per_agent(self, agents: Agents, jobs: Sequence[tuple[str, Callable[[], None]]]) -> None:
        for _, job in jobs:
            job()

    def collect(
        self, point: PointSpec, collectors: Collectors, start: Callable[[Sequence[Start]], None], answer_ns: int
    ) -> int:
        start(collectors(self.t0_ns))
        return self.t0_ns

    def lead_ns(self, flows: int) -> int:
        return LEAD_NS + CLIENT_NS * max(flows - 1, 0)


@dataclass(frozen=True)
class WallTime:
    """T0 is settled when the collectors that need not know it have started: then follow the samplers and the flows' own
    programs.  Agents work side by side."""

    lacks_nothing: bool = False
    attests: bool = True
    punctual: bool = False

    def per_agent(self, agents: Agents, jobs: Sequence[tuple[str, Callable[[], None]]]) -> None:
        by_agent: dict[str, list[Callable[[], None]]] = {}
        for agent, job in jobs:
            by_agent.setdefault(agent, []).append(job)
        agents.each({agent: functools.partial(_in_turn, own_jobs) for agent, own_jobs in by_agent.items()})

    def collect(
        self, point: PointSpec, collectors: Collectors, start: Callable[[Sequence[Start]], None], answer_ns: int
    ) -> int:
        begun = time.monotonic_ns()
        start([collector for collector in collectors(0) if not collector.samples])
        samplers = [collector.agent for collector in collectors(0) if collector.samples]
        t0_ns = time.time_ns() + _ahead_ns(point, samplers, time.monotonic_ns() - begun + ANSWERS * answer_ns)
        start([collector for collector in collectors(t0_ns) if collector.samples])
        return t0_ns

    def lead_ns(self, flows: int) -> int:
        return LEAD_NS


def _in_turn(jobs: Sequence[Callable[[], None]]) -> None:
    for job in jobs:
        job()


def _ahead_ns(point: PointSpec, samplers: Sequence[str], took_ns: int) -> int:
    """How long before the traffic the rest is begun: by its number, and by what the collectors before it took."""
    most = max(Counter([*samplers, *(flow.sink for flow in point.flows)]).values(), default=0)
    least = SLOW_LEAD_NS if any(flow.generator != "tgen" for flow in point.flows) else 0
    return LEAD_NS + max(FIRST_LEAD_NS + most * START_LEAD_NS + took_ns, least)
