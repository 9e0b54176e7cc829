# SPDX-License-Identifier: Apache-2.0
"""The history of a plan's points over all runs in a directory of results: levels, and the run that began each."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.untrusted import Named

from testctl.compare.deltas import Direction, direction, prefers, relative
from testctl.compare.samples import MEASURED
from testctl.compare.stats.change_points import ENOUGH, change_points
from testctl.core.point import POINT_WIDE
from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.noise.aa_test import numbers_of
from testctl.results import layout, shapes
from testctl.results.reader import read_json

_SHAPE = {
    "plan": str,
    "started": str,
    "testbed?": str,
    "versions?": {"commit?": str, "kernels?": Named(str)},
    "points": [shapes.ENTRY],
}
Tuples = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class PastRun:
    """A finished run, as far as a history needs it.

    points  those of summary.json; their tuples are sorted, and texts
    """

    name: str
    started: str
    testbed: str
    commit: str
    kernels: str
    points: tuple[Mapping[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        return {"run": self.name, "started": self.started, "commit": self.commit, "kernels": self.kernels}


@dataclass(frozen=True)
class Level:
    """A constant level: `count` runs from index `first` on; `relative` to the level before."""

    first: int
    count: int
    median: float
    relative: float | None
    direction: Direction


@dataclass(frozen=True)
class Trend:
    """A metric of a point over runs.

    runs    the runs that measured it, oldest first, and their values
    levels  at least one
    enough  whether there are enough runs to detect a change
    """

    id: str
    tuples: Tuples
    flow: str
    metric: str
    runs: tuple[PastRun, ...]
    values: tuple[float, ...]
    levels: tuple[Level, ...]
    enough: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "tuples": [list(tuple_) for tuple_ in self.tuples],
            "flow": self.flow,
            "metric": self.metric,
            "enough": self.enough,
            "values": list(self.values),
            "runs": [run.name for run in self.runs],
            "levels": [
                {**self.runs[level.first].to_json(), "first": level.first, "count": level.count, "median": level.median,
                 "relative": level.relative, "direction": level.direction,
                 "commit_before": self.runs[level.first - 1].commit if level.first else None}
                for level in self.levels
            ],
        }  # fmt: skip


def past_runs(results: Path, plan: str = "") -> tuple[str, str, tuple[PastRun, ...], tuple[str, ...]]:
    """Plan, testbed, its finished runs on it, oldest first, and the files that could not be read.

    Without a plan, the plan of the latest run; the testbed is that of the plan's latest run.  Raises PlanError if
    there is no run.
    """
    if not results.is_dir():
        raise PlanError(f"{results}: want a directory of runs; there is none")
    damaged: list[str] = []
    runs = sorted(_read(results, damaged), key=lambda pair: (pair[1].started, pair[1].name))
    wanted = plan or (runs[-1][0] if runs else "")
    named = [run for name, run in runs if name == wanted]
    if not named:
        others = ", ".join(sorted({name for name, _ in runs})) or "none"
        raise PlanError(f"{results}: want finished runs of plan {wanted or '(any)'}; got runs of: {others}")
    bed = named[-1].testbed
    return wanted, bed, tuple(run for run in named if run.testbed == bed), tuple(damaged)


def _read(results: Path, damaged: list[str]) -> Iterator[tuple[str, PastRun]]:
    for path in sorted(results.glob(f"*/{layout.SUMMARY}")):
        if path.parent.is_symlink() or path.parent.name.endswith(layout.IN_PROGRESS):
            continue
        try:
            document = read_json(path, _SHAPE)
            yield document["plan"], _past_run(path.parent.name, document)
        except PlanError as error:
            damaged.append(str(error))


def _past_run(name: str, document: Mapping[str, Any]) -> PastRun:
    versions, bed = document.get("versions", {}), document.get("testbed", DEFAULT)
    points = tuple(
        point | {"tuples": tuple(sorted((str(e), str(p), str(v)) for e, p, v in point["tuples"]))}
        for point in document["points"]
        if kind_of(bed).deterministic or "reused_from" not in point
    )
    kernels = ", ".join(versions.get("kernels", {}).values())
    return PastRun(name, document["started"], bed, versions.get("commit", "unknown"), kernels, points)


def trends(
    runs: Sequence[PastRun], metric: str = "", flow: str = "", least_runs: int = 3, seed: int = 1
) -> tuple[Trend, ...]:
    """A trend for every point and metric that at least `least_runs` runs measured, in the latest run's order.

    A run's value is the median of its repetitions.  Without `metric`, all metrics that prefer a direction.
    """
    histories: dict[tuple[Tuples, str], list[tuple[PastRun, float]]] = {}
    ids: dict[Tuples, str] = {}
    for run in reversed(runs):
        for (tuples, name), values in _values(run, ids).items():
            histories.setdefault((tuples, name), []).append((run, statistics.median(values)))
    trends_ = []
    for (tuples, name), history in histories.items():
        its_flow, _, its_metric = name.rpartition(" ")
        wanted = its_metric == metric if metric else prefers(its_metric) != "none"
        if wanted and (not flow or its_flow == flow) and len(history) >= least_runs:
            trends_.append(_trend(ids[tuples], tuples, its_flow or POINT_WIDE, its_metric, history[::-1], seed))
    return tuple(trends_)


def _values(run: PastRun, ids: dict[Tuples, str]) -> dict[tuple[Tuples, str], list[float]]:
    values: dict[tuple[Tuples, str], list[float]] = {}
    for point in run.points:
        tuples = point["tuples"]
        ids.setdefault(tuples, point["id"])
        if point["verdict"] in MEASURED:
            for name, value in numbers_of(point.get("metrics") or {}).items():
                values.setdefault((tuples, name), []).append(value)
    return values


def _trend(
    id: str, tuples: Tuples, flow: str, metric: str, history: Sequence[tuple[PastRun, float]], seed: int
) -> Trend:
    values = tuple(value for _, value in history)
    exact = kind_of(history[-1][0].testbed).deterministic
    starts = [0, *change_points(values, exact=exact, seed=seed)]
    parts = [values[a:b] for a, b in zip(starts, [*starts[1:], len(values)], strict=True)]
    medians = [statistics.median(part) for part in parts]
    levels = []
    for index, (start, part, middle) in enumerate(zip(starts, parts, medians, strict=True)):
        before = medians[index - 1] if index else middle
        levels.append(Level(start, len(part), middle, relative(before, middle), direction(metric, middle - before)))
    runs = tuple(run for run, _ in history)
    return Trend(id, tuples, flow, metric, runs, values, tuple(levels), exact or len(values) >= ENOUGH)
