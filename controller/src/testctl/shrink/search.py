# SPDX-License-Identifier: Apache-2.0
"""The whole search: the smallest set, what of the rest matters at its default, and the ranges of what is needed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value

from testctl.plan import Assignment
from testctl.shrink.case import Case, Tuple3, Tuples, candidate
from testctl.shrink.ddmin import ddmin, drive
from testctl.shrink.ranges import Interval, interval
from testctl.shrink.trials import Trial
from testctl.shrink.values import Numbers, Words, choices, shown

R = TypeVar("R")
Asking = Generator[Tuples, Trial, R]
Trials = Callable[[Sequence[Tuples]], list[Trial]]
"""Tries sets of tuples side by side and says what becomes of the failure with each; trials.Trials is one."""


@dataclass(frozen=True)
class Probe:
    """One other value of a tuple, and what became of the failure."""

    value: str
    answer: str


@dataclass(frozen=True)
class Matter:
    """A tuple, and what is known of it.

    needed    in the smallest set; False: it is there anyway, by default, or does not matter
    default   what holds without it; "" when unknown
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

    @property
    def matters(self) -> bool:
        """Whether some value other than this makes the failure go away."""
        return self.needed or any(probe.answer == "goes" for probe in self.probes)


@dataclass
class Found:
    """What a search knows so far; `done` says whether that is all."""

    smallest: Tuples = ()
    kept: dict[Tuple3, str] = field(default_factory=dict)
    matters: dict[Tuple3, Matter] = field(default_factory=dict)
    stage: str = "not begun"
    done: bool = False


def search(case: Case, trials: Trials, found: Found, probes: int, width: int) -> Found:
    """Fill `found`; whatever ends it early leaves there what was found.

    probes: other values of one number that are tried, in each direction; width: trials side by side
    """
    found.smallest, found.stage = case.tuples, "the point itself"
    _confirm(case, trials([case.tuples])[0])
    found.kept = kept(case)
    free = [item for item in case.tuples if item not in found.kept]
    found.stage = "the smallest set"

    def fails(batch: list[Tuples]) -> list[bool]:
        said = trials([_with(case, found.kept, part) for part in batch])
        for trial in said:
            if trial.stays and len(trial.tuples) < len(found.smallest):
                found.smallest = trial.tuples
        return [trial.stays for trial in said]

    needed = drive(ddmin(free, width), fails)
    found.smallest = _with(case, found.kept, needed)
    found.stage = "values of what is not in it"
    rest = [item for item in free if item not in needed]
    _all(found, trials, width, {item: _idle(case, found.smallest, item) for item in rest})
    found.stage = "ranges of what is in it"
    pinned = [item for item in rest if item in found.matters and found.matters[item].matters]
    found.smallest = tuple(item for item in case.tuples if item in found.smallest or item in pinned)
    _all(
        found,
        trials,
        width,
        {item: _range(case, found.smallest, item, probes, item in needed) for item in (*needed, *pinned)},
    )
    found.stage, found.done = "", True
    return found


def _confirm(case: Case, trial: Trial) -> None:
    if not trial.stays:
        does = "does not fail" if case.wanted == "fail" else "does not meet"
        why = f": {trial.words}" if trial.words else ""
        raise PlanError(f"point {case.point.id} {does} {case.expectation.name!r} when it is run again{why}")


def kept(case: Case) -> dict[Tuple3, str]:
    """The tuples that can't be left out, and why."""
    found = {}
    for item in case.tuples:
        if f"{item[0]}.{item[1]}" in case.than:
            found[item] = "the expectation compares two of its values"
            continue
        try:
            candidate(case, tuple(other for other in case.tuples if other != item))
        except PlanError as error:
            found[item] = str(error).splitlines()[0].removeprefix("<plan>:")
    return found


def _with(case: Case, always: Iterable[Tuple3], part: Sequence[Tuple3]) -> Tuples:
    there = {*always, *part}
    return tuple(item for item in case.tuples if item in there)


def _all(found: Found, trials: Trials, width: int, searches: dict[Tuple3, Asking[Matter]]) -> None:
    """Go on with all searches side by side, `width` trials at once; what each returns goes to `found.matters`."""
    asked: dict[Tuple3, Tuples] = {}

    def on(item: Tuple3, step: Callable[[], Tuples]) -> None:
        try:
            asked[item] = step()
        except StopIteration as end:
            asked.pop(item, None)
            found.matters[item] = end.value

    for item, asking in searches.items():
        on(item, lambda asking=asking: next(asking))  # type: ignore[misc]
    while asked:
        now = list(asked)[:width]
        for item, trial in zip(now, trials([asked[item] for item in now]), strict=True):
            asking = searches[item]
            on(item, lambda asking=asking, trial=trial: asking.send(trial))  # type: ignore[misc]


def _idle(case: Case, smallest: Tuples, item: Tuple3) -> Asking[Matter]:
    """A tuple that is not needed: its default is another value, or some other value is tried."""
    default, text = default_of(case, smallest, item)
    assignment = _assignment(case, item)
    kind = assignment.targets[0].spec.type
    if default is not None and default != kind.parse(item[2]):
        return Matter(item, False, text, (Probe(text, "stays"),))
    options = choices(kind, item[2], assignment.texts, default, passes=False)
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


def _range(case: Case, smallest: Tuples, item: Tuple3, probes: int, needed: bool) -> Asking[Matter]:
    """A tuple that matters: which other values keep the failure."""
    default, text = default_of(case, smallest, item)
    assignment = _assignment(case, item)
    options = choices(assignment.targets[0].spec.type, item[2], assignment.texts, default, passes=needed)
    tried: list[Probe] = []
    if isinstance(options, Words):
        for value in options.others:
            answer = "goes" if needed and value == text else (yield _put(case, smallest, item, value)).answer
            tried.append(Probe(value, answer))
        return Matter(item, needed, text, tuple(tried))
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
    return Matter(item, needed, text, tuple(tried), least, most, below, above)


def _put(case: Case, smallest: Tuples, item: Tuple3, value: str) -> Tuples:
    """The tuples with this one at another value; it is added where it is not among them."""
    return tuple((*other[:2], value) if other == item else other for other in case.tuples if other in {*smallest, item})


def _assignment(case: Case, item: Tuple3) -> Assignment:
    return next(a for a in case.plan.assignments if (a.entity, a.param) == item[:2])


def default_of(case: Case, smallest: Tuples, item: Tuple3) -> tuple[Value | None, str]:
    """What holds without a tuple, as a value and as a plan would write it; (None, "") when it is not known.

    It is what a less specific tuple sets, the parameter's default, or what the run's agents found before they set it.
    """
    target = _assignment(case, item).targets[0]
    value: Value | None = None
    try:
        without = candidate(case, tuple(other for other in smallest if other != item)).point
    except PlanError:
        without = None
    if without is not None:
        of_flows = {str(flow["name"]): flow["options"] for flow in without.flows}
        value = {**of_flows, **without.settings}.get(target.entity, {}).get(target.param)
    if value is None and target.spec.role == "state":
        agent = target.entity.partition(":")[0]
        name = target.param if agent == target.entity else f"{target.entity} {target.param}"
        value = case.found.state("before").get(agent, {}).get(name)
    return value, "" if value is None else shown(target.spec.type, value)
