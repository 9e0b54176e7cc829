# SPDX-License-Identifier: Apache-2.0
"""The whole search: the smallest set, what of the rest matters at its default, and the ranges of what is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from testctl_agent.spec.errors import PlanError

from testctl.plan.load import TEXT_NAME
from testctl.shrink.case import Case, Tuple3, Tuples, candidate
from testctl.shrink.ddmin import ddmin, drive
from testctl.shrink.matters import Asking, Matter, of_idle, of_needed
from testctl.shrink.trials import Trial

Trials = Callable[[Sequence[Tuples]], list[Trial]]
"""Tries sets of tuples side by side and says what becomes of the failure with each; trials.Trials is one."""


@dataclass
class SearchResult:
    """What a search knows so far; `done` says whether that is all."""

    smallest: Tuples = ()
    kept: dict[Tuple3, str] = field(default_factory=dict)
    matters: dict[Tuple3, Matter] = field(default_factory=dict)
    stage: str = "not begun"
    done: bool = False


def search(case: Case, trials: Trials, found: SearchResult, probes: int, width: int) -> SearchResult:
    """Fill `found`; whatever ends it early leaves there what was found.

    probes: other values of one number that are tried, in each direction; width: trials side by side
    """
    found.smallest, found.stage = case.tuples, "the point itself"
    _confirm(case, trials([case.tuples])[0])
    found.kept = kept(case)
    free = [item for item in case.tuples if item not in found.kept]
    found.stage = "the smallest set"

    def fails(batch: list[Tuples]) -> list[bool]:
        trials_made = trials([_with(case, found.kept, part) for part in batch])
        for trial in trials_made:
            if trial.stays and len(trial.tuples) < len(found.smallest):
                found.smallest = trial.tuples
        return [trial.stays for trial in trials_made]

    needed = drive(ddmin(free, width), fails)
    found.smallest = _with(case, found.kept, needed)
    found.stage = "values of what is not in it"
    rest = [item for item in free if item not in needed]
    _all(found, trials, width, {item: of_idle(case, found.smallest, item) for item in rest})
    found.stage = "ranges of what is in it"
    without = {item: trials([_without(found.smallest, item)])[0] for item in needed}  # known, each of them
    pinned = [item for item in rest if found.matters[item].matters]
    found.smallest = _with(case, found.smallest, pinned)
    ranges = {item: of_needed(case, found.smallest, item, probes, without.get(item)) for item in (*needed, *pinned)}
    _all(found, trials, width, ranges)
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
            candidate(case, _without(case.tuples, item))
        except PlanError as error:
            found[item] = str(error).splitlines()[0].removeprefix(f"{TEXT_NAME}: ")
    return found


def _with(case: Case, always: Iterable[Tuple3], part: Sequence[Tuple3]) -> Tuples:
    there = {*always, *part}
    return tuple(item for item in case.tuples if item in there)


def _without(tuples: Tuples, item: Tuple3) -> Tuples:
    return tuple(other for other in tuples if other != item)


def _all(found: SearchResult, trials: Trials, width: int, searches: Mapping[Tuple3, Asking]) -> None:
    """Go on with all searches side by side, `width` trials at once; what each returns goes to `found.matters`."""
    asked: dict[Tuple3, Tuples] = {}
    answers: dict[Tuple3, Trial | None] = dict.fromkeys(searches)
    while answers:
        for item, answer in answers.items():
            trials_made = _step(searches[item], answer)
            if isinstance(trials_made, Matter):
                found.matters[item] = trials_made
                asked.pop(item, None)
            else:
                asked[item] = trials_made
        now = list(asked)[:width]
        answers = dict(zip(now, trials([asked[item] for item in now]), strict=True)) if now else {}


def _step(asking: Asking, answer: Trial | None) -> Tuples | Matter:
    """What a search asks next, or what it found."""
    try:
        return next(asking) if answer is None else asking.send(answer)
    except StopIteration as end:
        found: Matter = end.value
        return found
