# SPDX-License-Identifier: Apache-2.0
"""A plan from its points to a finished run."""

from __future__ import annotations

import glob
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from testctl_agent.spec.errors import TestbedError

from testctl.core.testbed_kind import kind_of
from testctl.execution.finish import Judged, complete
from testctl.execution.options import Options
from testctl.execution.pool import LocalPool, Pool
from testctl.execution.resume import Resume
from testctl.plan import Plan, Point, PointVerdict, compared_with, verdict_alone
from testctl.plan.cost import disk_bytes, memory_bytes, rows
from testctl.records.native import library
from testctl.report.prepared import begin_drawing
from testctl.results import Run, RunPoint, RunWriter, layout, set_verdict
from testctl.results.atomic import size_text
from testctl.results.reader import load_point
from testctl.results.work import STOPPED, WORK, begin_work, clear_work, set_aside
from testctl.system.memory import free_mb
from testctl.testbeds.ready import Booting, ReadyTestbed


class Progress(Protocol):
    """Receives the progress of a run."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *_: Any) -> None: ...

    def done(self, name: str, verdict: str = "", wall_s: float | None = None, *, free: bool = False) -> None: ...

    def note(self, line: str) -> None: ...


class AdmissionPolicy(Protocol):
    """Decides whether another point may start.  Points that are not admitted are not part of the run."""

    def admits(self, point: Point) -> bool: ...

    def ended(self, point: Point, wall_s: float, verdict: str) -> None:
        """Called for every finished point, also for one that is reused from an earlier run.

        verdict: by the expectations that can be judged without the points that are still to be run
        """

    def failed(self, point: Point) -> None:
        """Called for a finished point that fails by the comparison with one that is finished later."""

    def summary(self, plan: Plan, run: Path) -> dict[str, Any]:
        """Entries for summary.json.  plan: with the points of the run; run: its directory once it is complete."""


def run_plan(
    plan: Plan,
    testbed: ReadyTestbed,
    options: Options,
    progress: Progress,
    *,
    pool: Pool | None = None,
    policy: AdmissionPolicy | None = None,
    judged: Judged | None = None,
) -> Run:
    """Run every point of a plan, or those that the policy admits, and return the finished run.

    pool    where the points are worked on; None: processes of this machine
    judged  is called before the report is drawn, which can take minutes

    Raises PlanError before anything is started when the result directory can't be made; on Ctrl-C or a
    failure of the machine finished points are kept for --resume.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    library()  # a missing one is reported before the first point is run
    if pool is None or isinstance(pool, LocalPool):
        _refuse_too_large(plan, options.jobs, free_mb())
    need = disk_bytes(plan.points, options.jobs, options.keep_captures)
    if options.out and options.out.name and options.resume:
        set_aside(options.out)
    writer = (
        RunWriter.create_at(options.out, need=need)
        if options.out
        else RunWriter.create(options.results_dir, plan.name, need=need)
    )
    try:
        begin_work(writer.path)
        points = {"points": [point.to_json() for point in plan.points]}
        writer.write_plan(plan.text, points, plan.topology_text, plan.traces)
        begin_drawing(writer.path)
        resume = (
            Resume(_earlier(options), writer.path, progress.note, options.keep_captures) if options.resume else None
        )
        going = _Going(plan, testbed, writer.path, progress, policy, resume)
        try:
            with progress:
                going.all(pool or LocalPool(options.jobs), options.keep_captures)
        finally:
            if isinstance(testbed, Booting):
                testbed.end()
        wall_s = time.monotonic() - clock
        more = resume.summary() if resume else {}
        if policy is not None:
            plan = replace(plan, points=tuple(point for point in plan.points if point.id in going.finished))
            more |= policy.summary(plan, writer.final)
        return complete(
            plan, writer, options, started, wall_s, points=going.finished.values(), more=more, judged=judged
        )
    except BaseException:
        clear_work(writer.path / WORK)
        writer.discard()
        raise


def _refuse_too_large(plan: Plan, jobs: int, there_mb: int) -> None:
    """Raises TestbedError where the analysis of the plan's largest points, `jobs` at once, would take more memory than
    there is."""
    largest = sorted(plan.points, key=memory_bytes, reverse=True)[:jobs]
    needs = [memory_bytes(point) for point in largest]
    if sum(needs) <= there_mb << 20:
        return
    free = f"this machine has {size_text(there_mb << 20)} free"
    want = "want a shorter point, fewer flows, or capture and telemetry off"
    if needs[0] <= there_mb << 20:
        raise TestbedError(
            f"{plan.file}: its {len(needs)} largest points, which run at once, take {size_text(sum(needs))} of memory "
            f"to analyse; {free}: want fewer --jobs, or {want.removeprefix('want ')}"
        )
    raise TestbedError(
        f"{plan.file}: point {largest[0].id} has about {rows(largest[0]):,} rows of packets, which take "
        f"{size_text(needs[0])} of memory to analyse; {free}: {want}"
    )


def _earlier(options: Options) -> list[tuple[Path, str]]:
    """Where `--resume` looks for points: directories, and a pattern of the runs' names in each."""
    places = [(options.results_dir, options.runs)]
    if options.out:
        places.insert(0, (options.out.parent, f"{glob.escape(options.out.name)}{STOPPED}*"))
    return places


@dataclass(frozen=True)
class _Going:
    """A run in progress; `finished` has each finished point, read once from its directory."""

    plan: Plan
    testbed: ReadyTestbed
    run: Path
    progress: Progress
    policy: AdmissionPolicy | None
    resume: Resume | None
    finished: dict[str, RunPoint] = field(default_factory=dict)
    compared: dict[str, list[Point]] = field(default_factory=dict)
    """Id of an unfinished point -> the finished points that expectations compare with it."""

    @cached_property
    def _at(self) -> dict[tuple[tuple[int, ...], int], Point]:
        return {(point.levels, point.repeat): point for point in self.plan.points}

    def all(self, pool: Pool, keep_captures: bool) -> None:
        """Run the points that are not finished and are admitted; a broken point does not stop the others."""
        with closing(pool.work(self.testbed, self._waiting(), self.run, keep_captures)) as done:
            for point, _, wall_s in done:
                self._ended(point, load_point(layout.point_dir(self.run, point.id), point), wall_s)

    def _waiting(self) -> Iterator[Point]:
        points = in_turns(self.plan)
        for point in self.testbed.in_order(points) if isinstance(self.testbed, Booting) else points:
            if self.resume is not None and (taken := self.resume.take(point, self.testbed.code_key(point))):
                self._ended(point, taken)
            elif self.policy is None or self.policy.admits(point):
                yield point

    def _ended(self, point: Point, result: RunPoint, wall_s: float | None = None) -> None:
        """Show the verdict by the finished points alone.  wall_s: None for a point of an earlier run."""
        others = [self._at[key] for key in compared_with(self.plan, point) if key in self._at]
        for other in others:
            if other.id not in self.finished:
                self.compared.setdefault(other.id, []).append(point)
        alone = self._judged(point, result, others)
        if alone is not None and alone.verdict == "fail":  # for readers of the run in progress
            result = set_verdict(result, alone.verdict, alone.reason)
        self.finished[point.id] = result
        shown = layout.UNJUDGED if alone is None else alone.verdict
        self.progress.done(_words(self.plan, point), shown, wall_s, free=wall_s is None)
        if self.policy is not None:
            self.policy.ended(point, result.wall_s if wall_s is None else wall_s, shown)
        for waiting in self.compared.pop(point.id, []):
            self._again(waiting, point)

    def _judged(self, point: Point, result: RunPoint, others: Sequence[Point]) -> PointVerdict | None:
        finished = [(other, self.finished[other.id].measured) for other in others if other.id in self.finished]
        return verdict_alone(self.plan, point, result.measured, finished)

    def _again(self, point: Point, other: Point) -> None:
        """Judge a finished point again after a point that it is compared with has finished."""
        result = self.finished[point.id]
        others = [self._at[key] for key in compared_with(self.plan, point) if key in self._at]
        verdict = self._judged(point, result, others)
        if verdict is None or verdict.verdict != "fail" or result.verdict == "fail":
            return
        self.finished[point.id] = set_verdict(result, verdict.verdict, verdict.reason)
        self.progress.note(f"{_words(self.plan, point)} … fail, compared with {_words(self.plan, other)}")
        if self.policy is not None:
            self.policy.failed(point)


def in_turns(plan: Plan) -> Sequence[Point]:
    """The points in the order in which they are run: in wall-clock time every point once, then every point again.

    Slow changes of a machine then affect all points equally; consecutive repetitions would differ by them.
    """
    return plan.points if kind_of(plan.testbed).deterministic else sorted(plan.points, key=lambda point: point.repeat)


def _words(plan: Plan, point: Point) -> str:
    """What distinguishes a point from the others of its plan: the swept values with the names of the parameters.

    Where two swept tuples have the same parameter, with the names of their entities.
    """
    swept = [(index, a) for index, a in enumerate(plan.assignments) if len(a.texts) > 1]
    uses = Counter(a.param for _, a in swept)
    values = [
        f"{a.param if uses[a.param] == 1 else f'{a.entity}.{a.param}'}={a.texts[point.levels[index]]}"
        for index, a in swept
    ]
    return " ".join([*values, *([f"#{point.repeat}"] if plan.repeat > 1 else [])]) or plan.name
