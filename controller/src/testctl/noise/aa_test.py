# SPDX-License-Identifier: Apache-2.0
"""The A/A test: repeats one point, alone and several at once; differences are noise.

The numbers of jobs alternate, so that slow changes of the machine affect all of them.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.core.point import POINT_WIDE
from testctl.execution.point import measure
from testctl.execution.run import Progress
from testctl.metrics import metric_names
from testctl.noise.bootstrap import Excess, excess, spread
from testctl.noise.fit import MIN_INTERRUPTS, described, lateness
from testctl.plan import Plan, Point
from testctl.records.schema import Ints
from testctl.results import layout, noise
from testctl.results.atomic import naming_path, write_json
from testctl.results.work import WORK, begin_work, clear_work
from testctl.system.worker_pool import workers
from testctl.testbeds.ready import ReadyTestbed

LATE = ".late.npy"
ALWAYS = "throughput_bps"
"""Primary metrics of every test, in addition to those of the plan's expectations."""


@dataclass(frozen=True)
class Check:
    """The parameters of a test.

    jobs     points at once; includes 1
    repeat   rounds of each
    factor   greatest allowed ratio of the spread with others to the spread alone
    metrics  the primary ones
    fit      also fit the jitter of a lab's hosts
    """

    point: Point
    jobs: tuple[int, ...]
    repeat: int
    metrics: tuple[str, ...]
    factor: float = 2.0
    seed: int = 1
    fit: bool = False


Sample = tuple[str, str, Mapping[str, float]]
"""Verdict, reason, metrics by flow and name: "bulk throughput_bps"."""


def check_of(
    plan: Plan,
    jobs: str,
    repeat: int,
    point: str = "",
    metrics: Sequence[str] = (),
    factor: float = 2.0,
    seed: int = 1,
    fit: bool = False,
) -> Check:
    """From words of the command line.  Raises PlanError."""
    try:
        levels = tuple(sorted({1, *(int(word) for word in jobs.split(","))}))
    except ValueError as error:
        raise PlanError(f"--jobs: want numbers with commas between, such as 1,2; got {jobs!r}") from error
    if levels[0] < 1 or levels[-1] > 256:
        raise PlanError(f"--jobs: want numbers from 1 to 256; got {jobs!r}")
    found = [p for p in plan.points if p.id.startswith(point)]
    if not found or (point and len(found) > 1):
        count = f"{len(found)} points" if found else "no point"
        raise PlanError(f"--point: {plan.name} has {count} {point!r}; testctl plan shows them")
    if unknown := [name for name in metrics if name not in metric_names()]:
        raise PlanError(f"--metric: want a metric's name, see testctl metrics; got {', '.join(unknown)}")
    wanted = tuple(dict.fromkeys(metrics or (ALWAYS, *(e.metric for e in plan.expectations if e.metric))))
    return Check(found[0], levels, repeat, wanted, factor, seed, fit)


def run_check(
    plan: Plan, bed: ReadyTestbed, check: Check, results: Path, progress: Progress
) -> tuple[dict[str, Any], Path]:
    """Run it and write results/<time>-<plan>-aa/noise.json; returns its content and the directory.

    Raises TestbedError if the point can't be measured alone.
    """
    started = datetime.now(UTC)
    place = results / layout.run_name(f"{plan.name}{layout.CHECK}", started)
    with naming_path(place, "the check was not begun"):
        durable.make_directory(place.parent)
        place.mkdir()
        durable.sync(place.parent)
    try:
        begin_work(place)
        with progress:
            work = place / WORK
            rounds: dict[int, list[list[Sample]]] = {jobs: [] for jobs in check.jobs}
            with workers(max(check.jobs)) as pool:
                for number in range(check.repeat):
                    for jobs in check.jobs:
                        late = work / str(number) if check.fit and jobs == 1 else None
                        rounds[jobs].append(_round(pool, bed, check.point, jobs, work / f"{number}-{jobs}", late))
                        progress.done(f"{jobs} at once #{number}")
        judgement = judged(check, rounds)
        if check.fit:
            judgement["jitter"] = _fits(check, place / WORK)
        clear_work(place / WORK)
        document = {
            "plan": plan.name,
            "testbed": plan.testbed,
            "started": started.isoformat(timespec="seconds"),
            "machine": noise.machine(),
            "tuples": [list(tuple_) for tuple_ in check.point.tuples],
            "left_out": [list(tuple_) for tuple_ in plan.left_out],
            **judgement,
        }
        with naming_path(place, "what was measured is lost"):
            write_json(place / noise.FILE, document)
    except BaseException:
        clear_work(place / WORK)
        shutil.rmtree(place, ignore_errors=True)
        raise
    return document, place


def _round(
    pool: ProcessPoolExecutor, bed: ReadyTestbed, point: Point, jobs: int, work: Path, late: Path | None = None
) -> list[Sample]:
    copies = [replace(point, repeat=number) for number in range(jobs)]
    running = [pool.submit(_sample, bed, copy, work / str(copy.repeat), late) for copy in copies]
    return [future.result() for future in running]


def _sample(bed: ReadyTestbed, point: Point, work: Path, late: Path | None) -> Sample:
    """late: what names of files begin with that say how late a host was"""
    result = measure(bed, point, work, keep_captures=False)
    if late is not None and result.records is not None:
        for host, times in lateness(result.records).items():
            np.save(late.with_name(f"{late.name}-{host}{LATE}"), times)
    shutil.rmtree(work, ignore_errors=True)
    return result.verdict, result.reason, numbers_of(result.metrics)


def _fits(check: Check, work: Path) -> dict[str, Any]:
    """Host → its jitter over all rounds alone, and the tuples that model it.

    Raises TestbedError if no host has enough interrupts.
    """
    rounds: dict[str, list[Ints]] = {}
    for file in sorted(work.glob(f"*{LATE}")):
        rounds.setdefault(file.name.removesuffix(LATE).partition("-")[2], []).append(np.load(file))
    times = {host: np.concatenate(times) for host, times in rounds.items()}
    fits = {host: described(late, check.seed) for host, late in times.items() if len(late) >= MIN_INTERRUPTS}
    if not fits:
        got = ", ".join(f"{host}: {len(late)}" for host, late in times.items()) or "none"
        raise TestbedError(
            f"--fit: point {check.point.id}: want a host with at least {MIN_INTERRUPTS} interrupts, captures at both "
            f"ends of its flow; got {got}"
        )
    return fits


def numbers_of(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Metrics by flow and name; those without a value (a mean of none is not a number) are left out."""
    return {
        f"{flow} {metric}" if flow != POINT_WIDE else metric: float(value)
        for flow, values in metrics.items()
        for metric, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def judged(check: Check, rounds: Mapping[int, Sequence[Sequence[Sample]]]) -> dict[str, Any]:
    """Evaluates the samples: spreads for each number of jobs, and the allowed number of jobs."""
    bad = _not_passed(rounds[1])
    if bad:
        raise TestbedError(f"A/A check: point {check.point.id}, alone, is {bad}")
    names = {name for samples in rounds[1] for _, _, numbers in samples for name in numbers}
    primary = sorted(name for name in names if name.rpartition(" ")[2] in check.metrics)
    alone = {name: _values(rounds[1], name) for name in primary}
    alone = {name: values for name, values in alone.items() if len(values) == check.repeat}
    spreads = {name: spread(values, check.seed, name) for name, values in alone.items()}
    if not any(spread.cv is not None for spread in spreads.values()):
        raise TestbedError(f"A/A check: point {check.point.id} has none of {', '.join(check.metrics)}, alone")
    levels = {jobs: _level(check, alone, rounds[jobs]) for jobs in check.jobs if jobs > 1}
    most = 1
    for jobs, level in levels.items():
        if not level["may"]:
            break
        most = jobs
    return {
        "repeat": check.repeat,
        "factor": check.factor,
        "seed": check.seed,
        "most_at_once": most,
        "alone": {name: asdict(spread) for name, spread in spreads.items() if spread.cv is not None},
        "beside": {str(jobs): level for jobs, level in levels.items()},
    }


def _level(check: Check, alone: Mapping[str, Sequence[Sequence[float]]], rounds: Sequence[Sequence[Sample]]) -> Any:
    """The verdict on a number of jobs, and the excess spread of each metric."""
    if bad := _not_passed(rounds):
        return {"may": False, "sure": True, "why": f"a point is {bad}", "metrics": {}}
    excesses: dict[str, Any] = {}
    for name, values in alone.items():
        beside = _values(rounds, name)
        if len(beside) < len(rounds):
            return {"may": False, "sure": True, "why": f"{name} has no value in some round", "metrics": {}}
        excesses[name] = (spread(beside, check.seed, name), excess(values, beside, check.seed, name))
    over = {name: excess for name, (_, excess) in excesses.items() if excess.ratio > check.factor}
    worst = max(excesses, key=lambda name: excesses[name][1].ratio)
    worst_excess: Excess = excesses[worst][1]
    sure = any(o.ratio_95[0] > check.factor for o in over.values()) if over else all(
        o.ratio_95[1] <= check.factor for _, o in excesses.values()
    )  # fmt: skip
    low, high = worst_excess.ratio_95
    why = f"{worst} spreads {worst_excess.ratio:.2f} times as much as alone (95 %: {low:.2f} to {high:.2f})"
    metrics = {name: asdict(spread) | asdict(excess) for name, (spread, excess) in excesses.items()}
    return {"may": not over, "sure": sure, "why": f"{why}; allowed: {check.factor:g}", "metrics": metrics}


def _not_passed(rounds: Sequence[Sequence[Sample]]) -> str:
    """The first verdict other than pass, with its reason; "" if there is none."""
    bad = [(verdict, reason) for samples in rounds for verdict, reason, _ in samples if verdict != "pass"]
    return f"{bad[0][0]}: {bad[0][1]}" if bad else ""


def _values(rounds: Sequence[Sequence[Sample]], name: str) -> list[list[float]]:
    """The values by round; rounds without one are left out."""
    by_round = [[numbers[name] for _, _, numbers in samples if name in numbers] for samples in rounds]
    return [values for values in by_round if values]
