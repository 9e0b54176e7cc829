# SPDX-License-Identifier: Apache-2.0
"""A plan from its points to a finished run: scheduling, analysis, verdicts, summary, report."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from testctl_agent.spec.errors import TestbedError, TestctlError
from testctl_agent.spec.untrusted import words

from testctl.execution.provenance import LAB, command_of, statement
from testctl.execution.resume import Resume
from testctl.execution.worker_pool import workers
from testctl.plan import Claim, Plan, Point, evaluate, evaluate_claims, verdict_alone
from testctl.report import run_so_far, write_report
from testctl.results import PointResult, Run, RunPoint, RunWriter, layout, load_run
from testctl.results.point import set_verdict, write_point
from testctl.results.reader import load_point, load_points
from testctl.results.summary import build_summary
from testctl.results.versions import collect_versions
from testctl.results.work import WORK, begin_work, clear_work

MOST_TRACEBACK = 100_000
SKIPPED = 4
"""The exit code of a run in which nothing was measured."""
SUMMARY_BYTES_PER_VIRTUAL_S = 40_000_000
"""About what a second of a 1 Gb/s flow leaves in captures and records: for the check of free space."""


class Bed(Protocol):
    """A testbed: where points are run.  Must be picklable."""

    def code_key(self, point: Point) -> str: ...

    def run(self, point: Point, workdir: Path) -> tuple[dict[str, Any], dict[str, Any]]: ...


class Progress(Protocol):
    """What is told while a run goes on."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *_: Any) -> None: ...

    def done(self, name: str, verdict: str = "", wall_s: float | None = None, *, free: bool = False) -> None: ...

    def note(self, line: str) -> None: ...


Done = tuple[Point, str, float]
"""A point whose directory is in the run, its verdict so far, and the wall seconds that it took."""
Finished = Generator[Done, None, None]


Judged = Callable[[Run], Callable[[str], None]]
"""Is given a run whose points are judged and whose report is still to be drawn; returns what is told of each point
that is drawn."""


class Pool(Protocol):
    """Where points are worked on, several at once."""

    def work(self, testbed: Bed, points: Iterator[Point], run: Path, keep_captures: bool) -> Finished:
        """Takes a point whenever there is room for one, so that few are under way however many there are.

        Closed before its end, it stops those that it can.  Raises TestbedError when it can't go on.
        """
        ...


class Watch(Protocol):
    """Who says, while a run goes on, whether one more point is begun; those that are not are not part of the run."""

    def admits(self, point: Point) -> bool: ...

    def ended(self, point: Point, wall_s: float) -> None:
        """Told of every point that is finished, one from an earlier run too."""
        ...

    def summary(self, plan: Plan, run: Path) -> dict[str, Any]:
        """What summary.json of this run says of it beside its points, which are the plan's."""
        ...


@dataclass(frozen=True)
class Options:
    """How a plan is run.

    out      the run's directory; None: a new one below results_dir
    resume   take finished points from earlier runs below results_dir
    runs     which of these: a pattern of their names
    drawers  processes that draw the report, if more than jobs
    """

    results_dir: Path
    out: Path | None = None
    jobs: int = 1
    resume: bool = False
    runs: str = "*"
    keep_captures: bool = True
    drawers: int = 1


def run_plan(
    plan: Plan,
    testbed: Bed,
    options: Options,
    progress: Progress,
    *,
    pool: Pool | None = None,
    watch: Watch | None = None,
    judged: Judged | None = None,
) -> Run:
    """Run every point of a plan, or those that `watch` admits, and return the finished run.

    pool    where the points are worked on; None: processes of this machine
    judged  is called before the report is drawn, which can take minutes

    Raises PlanError before anything is started when the result directory can't be made; on
    Ctrl-C or a failure of the machine finished points are kept for --resume.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    need = sum(point.duration_ns for point in plan.points) * SUMMARY_BYTES_PER_VIRTUAL_S // 10**9
    writer = (
        RunWriter.create_at(options.out, need=need)
        if options.out
        else RunWriter.create(options.results_dir, plan.name, need=need)
    )
    begin_work(writer.path)
    try:
        writer.write_plan(plan.text, {"points": [point.to_json() for point in plan.points]})
        resume = Resume(options.results_dir, writer.path, options.runs, progress.note) if options.resume else None
        with progress:
            _points(plan, testbed, options, writer, progress, pool or LocalPool(options.jobs), watch, resume)
        if watch is not None:
            plan = replace(plan, points=tuple(p for p in plan.points if layout.point_dir(writer.path, p.id).exists()))
        wall_s = time.monotonic() - clock
        return complete(plan, writer, options, started, wall_s, watch, resume.summary() if resume else {}, judged)
    except BaseException:
        clear_work(writer.path / WORK)
        writer.discard()
        raise


def complete(
    plan: Plan,
    writer: RunWriter,
    options: Options,
    started: datetime,
    wall_s: float,
    watch: Watch | None = None,
    more: Mapping[str, Any] | None = None,
    judged: Judged | None = None,
) -> Run:
    """Judge the points of a run in progress, write its summary and its report, and give it its final name.

    more: further entries of summary.json
    """
    expectations, claims = _judge(plan, writer.path)
    versions = collect_versions(kernels=_kernels(writer.path))
    writer.write_versions(versions)
    summary = build_summary(
        writer.path,
        plan=plan.name,
        started=started,
        wall_s=wall_s,
        versions=versions,
        expectations=expectations,
        claims=[claim.to_json() for claim in claims],
        order=[point.id for point in plan.points],
        about=plan.about,
        reproduce=command_of(plan),
    )
    summary |= statement(plan, options.results_dir, options.jobs)
    summary |= more or {}
    summary |= watch.summary(plan, writer.path.with_name(summary["run"])) if watch is not None else {}
    clear_work(writer.path / WORK)
    tell = judged(run_so_far(writer.path, summary)) if judged is not None else None
    write_report(writer.path, specs=plan.figures, summary=summary, jobs=max(options.jobs, options.drawers), tell=tell)
    return load_run(writer.finish(summary))


def _points(
    plan: Plan,
    testbed: Bed,
    options: Options,
    writer: RunWriter,
    progress: Progress,
    pool: Pool,
    watch: Watch | None,
    resume: Resume | None,
) -> None:
    """Run what is not finished yet and admitted; a broken point does not stop the others."""

    def waiting() -> Iterator[Point]:
        for point in in_turns(plan):
            reused = resume.take(point, testbed.code_key(point)) if resume is not None else None
            if reused is not None:
                progress.done(_words(plan, point), _verdict_so_far(plan, point, reused), free=True)
                ended(point, reused.wall_s)
            elif watch is None or watch.admits(point):
                yield point

    def ended(point: Point, wall_s: float) -> None:
        if watch is not None:
            watch.ended(point, wall_s)

    with closing(pool.work(testbed, waiting(), writer.path, options.keep_captures)) as done:
        for point, _, wall_s in done:
            found = load_point(layout.point_dir(writer.path, point.id))
            progress.done(_words(plan, point), _verdict_so_far(plan, point, found), wall_s)
            ended(point, wall_s)


def _verdict_so_far(plan: Plan, point: Point, found: RunPoint) -> str:
    """The verdict of a point by what the plan at hand expects of it alone, whatever an earlier run's plan expected.

    One that fails has it written down at once, for whoever looks at the run while it goes on.
    """
    verdict, reason = found.measured
    alone = verdict_alone(plan, point, {"verdict": verdict, "reason": reason, "metrics": found.metrics})
    if alone is not None and alone.verdict == "fail":
        set_verdict(found.path.parents[1], point.id, alone.verdict, alone.reason)
    return alone.verdict if alone is not None else layout.UNJUDGED


@dataclass(frozen=True)
class LocalPool:
    """Processes of this machine, `jobs` at once."""

    jobs: int

    def work(self, testbed: Bed, points: Iterator[Point], run: Path, keep_captures: bool) -> Finished:
        with workers(self.jobs) as pool:
            running: dict[Future[tuple[str, float]], Point] = {}
            while True:
                for point in islice(points, self.jobs - len(running)):
                    running[pool.submit(run_one, testbed, point, run, keep_captures)] = point
                if not running:
                    return
                for future in wait_for(running, return_when=FIRST_COMPLETED).done:
                    point = running.pop(future)
                    yield point, *_ended(future, point)


def in_turns(plan: Plan) -> Sequence[Point]:
    """The points in the order in which they are run: in wall-clock time every point once, then every point again.

    A machine that slowly changes then does so for all of them; repetitions back to back would each see another one.
    """
    return plan.points if plan.testbed == LAB else sorted(plan.points, key=lambda point: point.repeat)


def _words(plan: Plan, point: Point) -> str:
    """What distinguishes a point from the others of its plan."""
    swept = [a.texts[point.levels[i]] for i, a in enumerate(plan.assignments) if len(a.texts) > 1]
    return " ".join([*swept, *([f"#{point.repeat}"] if plan.repeat > 1 else [])]) or plan.name


def _ended(future: Future[tuple[str, float]], point: Point) -> tuple[str, float]:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise TestbedError(f"point {point.id}: its worker was killed from outside (out of memory?)") from error


def run_one(testbed: Bed, point: Point, run: Path, keep_captures: bool) -> tuple[str, float]:
    """Run, analyse and write one point; (verdict so far, wall seconds)."""
    workdir = run / WORK / point.id
    result = measure(testbed, point, workdir, keep_captures)
    keep(run, point, result)
    shutil.rmtree(workdir, ignore_errors=True)
    return result.verdict, result.wall_s


def measure(testbed: Bed, point: Point, workdir: Path, keep_captures: bool) -> PointResult:
    """Run and analyse one point, with its raw files below a directory that is made."""
    clock = time.monotonic()
    raw = workdir / "raw"
    raw.mkdir(parents=True)
    try:
        asked, outcome = testbed.run(point, raw)
        return _analyse(asked, outcome, workdir, clock, testbed.code_key(point), keep_captures)
    except TestctlError as error:
        return PointResult(point=point.to_json(), verdict="broken", reason=str(error), wall_s=time.monotonic() - clock)
    except Exception as error:  # noqa: BLE001  one point's oddity must not end the other points of its run
        return _bug(point, error, time.monotonic() - clock)


def keep(run: Path, point: Point, result: PointResult) -> Path:
    """Write the point's directory; what can't be written for another reason than the disk is kept as a bug."""
    try:
        return write_point(run, result)
    except TestctlError:
        raise
    except Exception as error:  # noqa: BLE001  as in measure()
        return write_point(run, _bug(point, error, result.wall_s))


def _bug(point: Point, error: Exception, wall_s: float) -> PointResult:
    where = traceback.extract_tb(error.__traceback__)[-1]
    said = str(error).partition("\n")[0][:200]
    reason = (
        f"a bug, or an agent's odd answer: {type(error).__name__}: {said} ({Path(where.filename).name}:{where.lineno})"
    )
    return PointResult(
        point=point.to_json(),
        verdict="broken",
        reason=words(f"{reason}; {layout.TRACEBACK} beside it has the rest"),
        wall_s=wall_s,
        traceback="".join(traceback.format_exception(error))[-MOST_TRACEBACK:],
    )


def _analyse(
    asked: dict[str, Any], outcome: dict[str, Any], workdir: Path, clock: float, code_key: str, keep_captures: bool
) -> PointResult:
    """From raw files to records, metrics and a first verdict."""
    from testctl.execution.assess import analysis_keys, assess
    from testctl.records import load_raw
    from testctl.results.atomic import as_json

    for verdict, reason in (("skip", outcome.get("skip")), ("broken", outcome.get("error"))):
        if reason:
            words = "; ".join([reason, *outcome.get("drift", [])])
            return PointResult(
                point=asked, verdict=verdict, reason=words, outcome=outcome, wall_s=time.monotonic() - clock
            )
    (workdir / "point.json").write_text(as_json(asked), encoding="utf-8")
    (workdir / "raw" / "outcome.json").write_text(as_json(outcome), encoding="utf-8")
    records = load_raw(workdir)
    found = assess(records)
    captures = {path.parents[1].name: path for path in sorted((workdir / "raw").glob("*/capture/capture.pcap"))}
    return PointResult(
        point=asked,
        verdict=found.verdict,
        reason=found.reason,
        code_key=code_key,
        wall_s=round(time.monotonic() - clock, 3),
        virtual_s=(outcome["end_ns"] - outcome["t0_ns"]) / 1e9,
        outcome=outcome,
        metrics=found.metrics,
        records=records,
        stalls=found.stalls,
        fates=found.fates,
        captures=captures if keep_captures else {},
        analysis=analysis_keys(),
    )


def _judge(plan: Plan, run: Path) -> tuple[Sequence[Mapping[str, Any]], Sequence[Claim]]:
    """Hold the points against the plan's `expect`, write each verdict down; what became of expectations and claims."""
    wanted = {expectation.metric for expectation in plan.expectations}
    results, there = {}, {}
    for point in load_points(run):
        there[point.id] = point.verdict, point.reason
        results[point.id] = {
            "verdict": point.measured[0],
            "reason": point.measured[1],
            "metrics": {f: {m: v for m, v in given.items() if m in wanted} for f, given in point.metrics.items()},
        }
    verdicts, expectations = evaluate(plan, results)
    for said in verdicts:
        if (said.verdict, said.reason) != there[said.point]:
            set_verdict(run, said.point, said.verdict, said.reason)
    return [e.to_json() for e in expectations], evaluate_claims(plan, results)


def _kernels(run: Path) -> dict[str, str]:
    """The full releases of the kernels that ran."""
    releases = {str(p.outcome.get("kernel")) for p in load_points(run) if p.outcome.get("kernel")}
    return {".".join(release.split(".")[:2]): release for release in sorted(releases)}


def exit_code(run: Run) -> int:
    """0 what was measured passed, 1 some expectation failed, 3 something is broken or invalid, 4 all was skipped."""
    verdicts = {point.verdict for point in run.points}
    if verdicts == {"skip"}:
        return SKIPPED
    verdicts |= {expectation["verdict"] for expectation in run.summary.get("expectations", [])}
    if verdicts & {"broken", "invalid"}:
        return 3
    return 1 if "fail" in verdicts else 0


__all__ = ["SKIPPED", "Bed", "LocalPool", "Options", "Pool", "Progress", "Watch", "exit_code", "layout", "run_plan"]
