# SPDX-License-Identifier: Apache-2.0
"""The A/A check: one point again and again, alone and with itself beside it; what differs is noise.

The numbers at once take turns, so that a machine that slowly changes does so for all of them.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.execution.point import measure
from testctl.execution.run import Progress
from testctl.noise.bootstrap import Excess, Spread, excess, spread
from testctl.noise.fit import MIN_INTERRUPTS, described, lateness
from testctl.plan import Plan, Point
from testctl.records.schema import Ints
from testctl.results import layout, noise
from testctl.results.atomic import naming_path, write_json
from testctl.results.work import WORK, begin_work, clear_work
from testctl.system.worker_pool import workers
from testctl.testbeds.bed import Bed

LATE = ".late.npy"
ALWAYS = "throughput_bps"
"""A primary metric of every check, beside those that the plan expects something of."""


@dataclass(frozen=True)
class Check:
    """What is asked.

    jobs     how many at once; 1, alone, is among them
    repeat   rounds of each
    factor   by how much the spread beside others may exceed that alone
    metrics  the primary ones
    fit      also say what jitter a lab's hosts would need
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
    chosen = next((p for p in plan.points if p.id.startswith(point)), None)
    if chosen is None:
        raise PlanError(f"--point: {plan.name} has no point {point!r}; testctl plan shows them")
    wanted = tuple(dict.fromkeys(metrics or (ALWAYS, *(e.metric for e in plan.expectations))))
    return Check(chosen, levels, repeat, wanted, factor, seed, fit)


def run_check(plan: Plan, bed: Bed, check: Check, results: Path, progress: Progress) -> tuple[dict[str, Any], Path]:
    """Run it and write results/<time>-<plan>-aa/noise.json; what is in it, and the directory.

    Raises TestbedError when the point can't be had alone.
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
            rounds = _rounds(bed, check, place / WORK, progress)
        judgement = judged(check, rounds)
        if check.fit:
            judgement["jitter"] = _fits(check, place / WORK)
        clear_work(place / WORK)
        document = {
            "plan": plan.name,
            "testbed": plan.testbed,
            "started": started.isoformat(timespec="seconds"),
            "machine": noise.machine(),
            "tuples": [list(one) for one in check.point.tuples],
            "left_out": [list(one) for one in plan.left_out],
            **judgement,
        }
        with naming_path(place, "what was measured is lost"):
            write_json(place / noise.FILE, document)
    except BaseException:
        clear_work(place / WORK)
        shutil.rmtree(place, ignore_errors=True)
        raise
    return document, place


def _rounds(bed: Bed, check: Check, work: Path, progress: Progress) -> dict[int, list[list[Sample]]]:
    found: dict[int, list[list[Sample]]] = {jobs: [] for jobs in check.jobs}
    with workers(max(check.jobs)) as pool:
        for number in range(check.repeat):
            for jobs in check.jobs:
                late = work / str(number) if check.fit and jobs == 1 else None
                found[jobs].append(_round(pool, bed, check.point, jobs, work / f"{number}-{jobs}", late))
                progress.done(f"{jobs} at once #{number}")
    return found


def _round(
    pool: ProcessPoolExecutor, bed: Bed, point: Point, jobs: int, work: Path, late: Path | None = None
) -> list[Sample]:
    copies = [replace(point, repeat=number) for number in range(jobs)]
    running = [pool.submit(_sample, bed, copy, work / str(copy.repeat), late) for copy in copies]
    return [one.result() for one in running]


def _sample(bed: Bed, point: Point, work: Path, late: Path | None) -> Sample:
    """late: what names of files begin with that say how late a host was"""
    result = measure(bed, point, work, keep_captures=False)
    if late is not None and result.records is not None:
        for host, times in lateness(result.records).items():
            np.save(late.with_name(f"{late.name}-{host}{LATE}"), times)
    shutil.rmtree(work, ignore_errors=True)
    return result.verdict, result.reason, numbers_of(result.metrics)


def _fits(check: Check, work: Path) -> dict[str, Any]:
    """Host → the jitter that it had in all rounds alone, and the tuples for it.

    Raises TestbedError when there are too few interrupts for any.
    """
    rounds: dict[str, list[Ints]] = {}
    for file in sorted(work.glob(f"*{LATE}")):
        rounds.setdefault(file.name.removesuffix(LATE).partition("-")[2], []).append(np.load(file))
    times = {host: np.concatenate(one) for host, one in rounds.items()}
    found = {host: described(late, check.seed) for host, late in times.items() if len(late) >= MIN_INTERRUPTS}
    if not found:
        got = ", ".join(f"{host}: {len(late)}" for host, late in times.items()) or "none"
        raise TestbedError(
            f"--fit: point {check.point.id}: want a host with at least {MIN_INTERRUPTS} interrupts, captures at both "
            f"ends of its flow; got {got}"
        )
    return found


def numbers_of(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Metrics by flow and name; those without a value (a mean of none is not a number) are left out."""
    return {
        f"{flow} {metric}" if flow != "*" else metric: float(value)
        for flow, values in metrics.items()
        for metric, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def judged(check: Check, rounds: Mapping[int, Sequence[Sequence[Sample]]]) -> dict[str, Any]:
    """What the samples say: of each number at once its spreads, and how many may run at once."""
    bad = _not_passed(rounds[1])
    if bad:
        raise TestbedError(f"A/A check: point {check.point.id}, alone, is {bad}")
    primary = sorted({n for one in rounds[1] for _, _, numbers in one for n in numbers if _named(n) in check.metrics})
    alone = {name: _values(rounds[1], name) for name in primary}
    alone = {name: values for name, values in alone.items() if len(values) == check.repeat}
    spreads = {name: spread(values, check.seed, name) for name, values in alone.items()}
    if not any(one.cv is not None for one in spreads.values()):
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
        "alone": {name: _shown(one) for name, one in spreads.items() if one.cv is not None},
        "beside": {str(jobs): level for jobs, level in levels.items()},
    }


def _level(check: Check, alone: Mapping[str, Sequence[Sequence[float]]], rounds: Sequence[Sequence[Sample]]) -> Any:
    """A number at once: may it be, and how much more each metric spreads."""
    if bad := _not_passed(rounds):
        return {"may": False, "sure": True, "why": f"a point is {bad}", "metrics": {}}
    found: dict[str, Any] = {}
    for name, values in alone.items():
        beside = _values(rounds, name)
        if len(beside) < len(rounds):
            return {"may": False, "sure": True, "why": f"{name} has no value in some round", "metrics": {}}
        found[name] = (spread(beside, check.seed, name), excess(values, beside, check.seed, name))
    over = {name: one for name, (_, one) in found.items() if one.ratio > check.factor}
    worst = max(found, key=lambda name: found[name][1].ratio)
    one: Excess = found[worst][1]
    sure = any(o.ratio_95[0] > check.factor for o in over.values()) if over else all(
        o.ratio_95[1] <= check.factor for _, o in found.values()
    )  # fmt: skip
    low, high = one.ratio_95
    why = f"{worst} spreads {one.ratio:.2f} times as much as alone (95 %: {low:.2f} to {high:.2f})"
    metrics = {n: {**_shown(s), "ratio": e.ratio, "ratio_95": list(e.ratio_95)} for n, (s, e) in found.items()}
    return {"may": not over, "sure": sure, "why": f"{why}; allowed: {check.factor:g}", "metrics": metrics}


def _not_passed(rounds: Sequence[Sequence[Sample]]) -> str:
    """The first verdict that is none of a measurement, with its reason; "" when there is none."""
    bad = [(verdict, reason) for one in rounds for verdict, reason, _ in one if verdict != "pass"]
    return f"{bad[0][0]}: {bad[0][1]}" if bad else ""


def _named(name: str) -> str:
    return name.rpartition(" ")[2]


def _values(rounds: Sequence[Sequence[Sample]], name: str) -> list[list[float]]:
    """By round, what has a value; rounds without one are left out."""
    found = [[numbers[name] for _, _, numbers in one if name in numbers] for one in rounds]
    return [values for values in found if values]


def _shown(one: Spread) -> dict[str, Any]:
    return {"count": one.count, "mean": one.mean, "cv": one.cv, "cv_95": list(one.cv_95) if one.cv_95 else None}
