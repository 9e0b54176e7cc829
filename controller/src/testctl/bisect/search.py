# SPDX-License-Identifier: Apache-2.0
"""git's bisection over the lab's verdicts, from two revisions to a commit, with what it changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.bisect import repository
from testctl.bisect.criterion import Criterion, Verdict
from testctl.bisect.measure import Bench, Measurement, need_lab
from testctl.bisect.repository import Bisection, Commit
from testctl.compare.deltas import Move, moves
from testctl.compare.packet import FirstDifference, first_difference
from testctl.system.temporary import temporary

LOG = "bisect.log"
"""The file with git's log."""


@dataclass(frozen=True)
class Step:
    """A commit that was judged; verdict "skip": it can't be, `words` says why."""

    commit: Commit
    verdict: Verdict | str
    words: str
    same_as: str = ""


@dataclass(frozen=True)
class Change:
    """What a point is before and after the first bad commit."""

    point: str
    metrics: tuple[Move, ...]
    first: FirstDifference | None


@dataclass(frozen=True)
class Found:
    """The result of a bisection.

    culprit   the first bad commit; None: one of `possible` is, and the others of them could not be judged
    before    the commit before it, which is good
    values    what the criterion says of before and of the culprit
    total     how many commits were between the two ends
    """

    good: Commit
    bad: Commit
    criterion: Criterion
    culprit: Commit | None
    before: Commit | None
    possible: tuple[Commit, ...]
    values: tuple[float | str, float | str]
    steps: tuple[Step, ...]
    changes: tuple[Change, ...]
    total: int
    builds: int
    runs: int


def search(bench: Bench, good: Commit, bad: Commit, criterion: Criterion, notify: Callable[[Step], None]) -> Found:
    """Bisect.  Raises PlanError for ends that can't be bisected, TestbedError for a lab that fails or does not repeat.

    notify: called for each commit that was judged, with the two ends first
    """
    total = repository.between(bench.tree, good, bad)
    steps: list[Step] = []

    def step(commit: Commit, verdict: Verdict | str, measurement: Measurement) -> None:
        text = measurement.untestable or f"{criterion.words} {criterion.shown(criterion.value(measurement))}"
        steps.append(Step(commit, verdict, text, measurement.same_as))
        notify(steps[-1])

    ends = [need_lab(bench.measured(commit.id)) for commit in (good, bad)]
    for commit, verdict, measurement in zip((good, bad), ("good", "bad"), ends, strict=True):
        step(commit, verdict, measurement)
    criterion.check_ends(*ends)
    for measurement in ends:
        check_repeats(bench, measurement, criterion)
    with (
        temporary(repository.HOME) as home,
        repository.bisection(bench.tree, good.id, bad.id, home) as git,
    ):
        _all(git, bench, ends, criterion, step)
        (bench.directory / LOG).write_text(git.log, encoding="utf-8")
        first, possible = git.first_bad, git.undecided
    culprit = repository.commit(bench.tree, first) if first else None
    before = repository.commit(bench.tree, repository.parent(bench.tree, first)) if first else None
    values = [criterion.value(measurement) for measurement in ends]
    changes: Sequence[Change] = ()
    if culprit and before:
        pair = need_lab(bench.measured(before.id)), bench.measured(culprit.id)
        values, changes = [criterion.value(measurement) for measurement in pair], _changes(bench, *pair)
    return Found(
        good, bad, criterion, culprit, before, tuple(repository.commit(bench.tree, each) for each in possible),
        (values[0], values[1]), tuple(steps), tuple(changes), total, bench.builds, bench.runs,
    )  # fmt: skip


def _all(
    git: Bisection,
    bench: Bench,
    ends: Sequence[Measurement],
    criterion: Criterion,
    step: Callable[[Commit, Verdict | str, Measurement], None],
) -> None:
    """Mark every candidate, until git knows the first bad commit, or only skipped ones are left."""
    while not git.first_bad and not git.undecided:
        candidate = git.candidate
        measurement = bench.measured(candidate)
        try:
            verdict = "skip" if measurement.untestable else criterion.judge(measurement, ends[0], ends[1])
        except PlanError as error:  # a metric that has no value there
            measurement, verdict = replace(measurement, untestable=str(error)), "skip"
        step(repository.commit(bench.tree, candidate), verdict, measurement)
        git.mark(candidate, verdict)


def check_repeats(bench: Bench, measurement: Measurement, criterion: Criterion) -> None:
    """Run an end a second time.  Raises TestbedError when it is then judged by another value."""
    again = bench.again(measurement.commit)
    if again.untestable:
        raise TestbedError(
            f"commit {measurement.commit[:12]} is flaky: the second run can't be judged: {again.untestable}"
        )
    first, second = criterion.value(measurement), criterion.value(again)
    if first != second:
        raise TestbedError(
            f"commit {measurement.commit[:12]} is flaky: by the {criterion.words} it is {criterion.shown(first)} in "
            f"one run and {criterion.shown(second)} in the next; nothing can be bisected by that"
        )


def _changes(bench: Bench, before: Measurement, after: Measurement) -> list[Change]:
    ours, theirs = bench.points(before.commit), bench.points(after.commit)
    return [
        Change(
            name,
            moves(before.metrics.get(name, {}), after.metrics.get(name, {}), 0.0),
            first_difference(ours[name].path, theirs[name].path) if ours[name].digest != theirs[name].digest else None,
        )
        for name in ours
    ]
