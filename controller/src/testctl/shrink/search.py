# SPDX-License-Identifier: Apache-2.0
"""The search: the smallest set, other tuples whose defaults matter, and the ranges of needed ones."""

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
"""Tries sets of tuples in parallel and returns the outcome of each; implemented by trials.Trials."""


@dataclass
class SearchResult:
    """The results of a search so far; `done`: it is complete."""

    smallest: Tuples = ()
    kept: dict[Tuple3, str] = field(default_factory=dict)
    matters: dict[Tuple3, Matter] = field(default_factory=dict)
    stage: str = "not begun"
    done: bool = False


def search(case: Case, trials: Trials, result: SearchResult, probes: int, width: int) -> SearchResult:
    """Fill `result`, which keeps partial results when the search ends early.

    probes: values of a number to try in each direction; width: parallel trials
    """
    result.smallest, result.stage = case.tuples, "the point itself"
    _confirm(case, trials([case.tuples])[0])
    result.kept = kept(case)
    free = [item for item in case.tuples if item not in result.kept]
    result.stage = "the smallest set"

    def fails(batch: list[Tuples]) -> list[bool]:
        trials_made = trials([_with(case, result.kept, part) for part in batch])
        for trial in trials_made:
            if trial.stays and len(trial.tuples) < len(result.smallest):
                result.smallest = trial.tuples
        return [trial.stays for trial in trials_made]

    needed = drive(ddmin(free, width), fails)
    result.smallest = _with(case, result.kept, needed)
    result.stage = "values of what is not in it"
    rest = [item for item in free if item not in needed]
    _all(result, trials, width, {item: of_idle(case, result.smallest, item) for item in rest})
    result.stage = "ranges of what is in it"
    without = {item: trials([_without(result.smallest, item)])[0] for item in needed}  # known, each of them
    pinned = [item for item in rest if result.matters[item].matters]
    result.smallest = _with(case, result.smallest, pinned)
    ranges = {item: of_needed(case, result.smallest, item, probes, without.get(item)) for item in (*needed, *pinned)}
    _all(result, trials, width, ranges)
    result.stage, result.done = "", True
    return result


def _confirm(case: Case, trial: Trial) -> None:
    if not trial.stays:
        does = "does not fail" if case.wanted == "fail" else "does not meet"
        why = f": {trial.words}" if trial.words else ""
        raise PlanError(f"point {case.point.id} {does} {case.judged_by!r} when it is run again{why}")


def kept(case: Case) -> dict[Tuple3, str]:
    """The tuples that can't be left out, alone or with one that needs them, and why."""
    kept_tuples = {}
    for item in case.tuples:
        if f"{item[0]}.{item[1]}" in case.than:
            kept_tuples[item] = "the expectation compares two of its values"
            continue
        if item[1] == "kernel":
            kept_tuples[item] = "the default kernel is another one on other machines"
            continue
        rest = _without(case.tuples, item)
        why = _refused(case, rest)
        others = [other for other in rest if f"{other[0]}.{other[1]}" not in case.than]
        if why and all(_refused(case, _without(rest, other)) for other in others):
            kept_tuples[item] = why
    return kept_tuples


def _refused(case: Case, tuples: Tuples) -> str:
    """Why these tuples are no plan; "": they are one."""
    try:
        candidate(case, tuples)
    except PlanError as error:
        return str(error).splitlines()[0].removeprefix(f"{TEXT_NAME}: ")
    return ""


def _with(case: Case, always: Iterable[Tuple3], part: Sequence[Tuple3]) -> Tuples:
    there = {*always, *part}
    return tuple(item for item in case.tuples if item in there)


def _without(tuples: Tuples, item: Tuple3) -> Tuples:
    return tuple(other for other in tuples if other != item)


def _all(result: SearchResult, trials: Trials, width: int, searches: Mapping[Tuple3, Asking]) -> None:
    """Advance all searches in parallel, `width` trials at once; their results go to `result.matters`."""
    requests: dict[Tuple3, Tuples] = {}
    answers: dict[Tuple3, Trial | None] = dict.fromkeys(searches)
    while answers:
        for item, answer in answers.items():
            trials_made = _step(searches[item], answer)
            if isinstance(trials_made, Matter):
                result.matters[item] = trials_made
                requests.pop(item, None)
            else:
                requests[item] = trials_made
        now = list(requests)[:width]
        answers = dict(zip(now, trials([requests[item] for item in now]), strict=True)) if now else {}


def _step(asking: Asking, answer: Trial | None) -> Tuples | Matter:
    """The next request of a search, or its result."""
    try:
        return next(asking) if answer is None else asking.send(answer)
    except StopIteration as end:
        matter: Matter = end.value
        return matter
