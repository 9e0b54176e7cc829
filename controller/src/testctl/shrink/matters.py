# SPDX-License-Identifier: Apache-2.0
"""The effect of a tuple on a failure: whether it matters, and at which value the failure disappears."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value

from testctl.plan import Assignment
from testctl.plan.numbers import value_shown
from testctl.shrink.case import Case, Tuple3, Tuples, candidate
from testctl.shrink.ranges import Interval, interval
from testctl.shrink.trials import Trial
from testctl.shrink.values import Numbers, Words, choices


@dataclass(frozen=True)
class Probe:
    """Another value of a tuple, and the answer of its trial."""

    value: str
    answer: str


@dataclass(frozen=True)
class Matter:
    """A tuple, and the results of its trials.

    needed    in the smallest set; False: it is set by default anyway, or does not matter
    default   the value without it; "" if unknown
    without   the answer without it: goes or unclear; "" if it is not needed
    probes    the other values tried, in that order
    least, most, below, above  for a number the range in which the failure stays, and the nearest values outside
    """

    item: Tuple3
    needed: bool
    default: str = ""
    probes: tuple[Probe, ...] = ()
    least: str = ""
    most: str = ""
    below: str = ""
    above: str = ""
    without: str = ""

    @property
    def matters(self) -> bool:
        """Whether another value makes the failure disappear."""
        return self.needed or any(probe.answer == "goes" for probe in self.probes)


Asking = Generator[Tuples, Trial, Matter]
"""A search that yields sets of tuples to try and is sent the outcome of each."""


def of_idle(case: Case, smallest: Tuples, item: Tuple3) -> Asking:
    """A tuple that is not needed: its default is another value, or some other value is tried."""
    default, text = default_of(case, smallest, item)
    assignment = _assignment(case, item)
    kind = assignment.targets[0].spec.type
    if default is not None and default != kind.parse(case.plan.traces.get(item[2], item[2])):
        return Matter(item, False, text, (Probe(text, "stays"),))
    options = choices(kind, item[2], _values(case, assignment), default, False, case.plan.traces)
    if isinstance(options, Numbers):
        axis = options.axis
        near = (*axis.hints, max(axis.value // 2, axis.least), min(max(axis.value, axis.step) * 2, axis.most))
        values = tuple(options.show(number) for number in dict.fromkeys(near) if number != axis.value)[:2]
    else:
        values = options.others
    probes: list[Probe] = []
    for value in values:
        trial = yield _put(case, smallest, item, value)
        probes.append(Probe(value, trial.answer))
    return Matter(item, False, text, tuple(probes))


def of_needed(case: Case, smallest: Tuples, item: Tuple3, probes: int, without: Trial | None) -> Asking:
    """A tuple that matters: which other values keep the failure.

    without: the trial without it; None for one that is there by default
    """
    default, text = default_of(case, smallest, item)
    assignment = _assignment(case, item)
    goes = without is not None and without.answer == "goes"
    kind, files = assignment.targets[0].spec.type, case.plan.traces
    options = choices(kind, item[2], _values(case, assignment), default, goes, files)
    matter = Matter(item, without is not None, text, without="" if without is None else without.answer)
    tried: list[Probe] = []
    if isinstance(options, Words):
        for value in options.others:
            answer = "goes" if goes and value == text else (yield _put(case, smallest, item, value)).answer
            tried.append(Probe(value, answer))
        return replace(matter, probes=tuple(tried))
    asking = interval(options.axis, probes)
    try:
        number = next(asking)
        while True:
            value = options.show(number)
            trial = yield _put(case, smallest, item, value)
            tried.append(Probe(value, trial.answer))
            number = asking.send(trial.stays)
    except StopIteration as end:
        edges: Interval = end.value
    below, above = ("" if edge is None else options.show(edge) for edge in (edges.below, edges.above))
    least, most = options.show(edges.least), options.show(edges.most)
    return replace(matter, probes=tuple(tried), least=least, most=most, below=below, above=above)


def _put(case: Case, smallest: Tuples, item: Tuple3, value: str) -> Tuples:
    """The tuples with this one set to another value, or added."""
    return tuple((*other[:2], value) if other == item else other for other in case.tuples if other in {*smallest, item})


def _values(case: Case, assignment: Assignment) -> list[str]:
    """All values of the tuple in the plan: as it was run, then as in plan.yaml."""
    return [*assignment.constants, *case.swept.get((assignment.entity, assignment.param), ())]


def _assignment(case: Case, item: Tuple3) -> Assignment:
    return next(a for a in case.plan.assignments if (a.entity, a.param) == item[:2])


def default_of(case: Case, smallest: Tuples, item: Tuple3) -> tuple[Value | None, str]:
    """The value without a tuple, parsed and as in a plan; (None, "") if unknown.

    It is set by a less specific tuple, is the parameter's default, or was read by the agents before they set it.
    """
    target = _assignment(case, item).targets[0]
    value: Value | None = None
    try:
        without = candidate(case, tuple(other for other in smallest if other != item)).point
    except PlanError:
        without = None
    if without is not None:
        of_flows = {flow.name: flow.options for flow in without.flows}
        value = {**of_flows, **without.settings}.get(target.entity, {}).get(target.param)
    if value is None and target.spec.role == "state":
        agent = target.entity.partition(":")[0]
        name = target.param if agent == target.entity else f"{target.entity} {target.param}"
        value = case.found.state("before").get(agent, {}).get(name)
    return value, "" if value is None else value_shown(target.spec.type, value)
