# SPDX-License-Identifier: Apache-2.0
"""All runs of a plan: one metric of each of its points over them, and where its level changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testctl.compare import change_points
from testctl.core.units import show_metric
from testctl.report.factors import describe, factors
from testctl.report.metrics import number_of
from testctl.serve.cache import Cache
from testctl.serve.listing import Unknown
from testctl.serve.runs import Found, Runs

RUNS = 60
"""Runs that are shown, the newest."""

POINTS = 1000
"""Points that are shown: those that the newest runs have."""


@dataclass(frozen=True)
class _Seen:
    """A run as its plan's page needs it: of each point its words, verdict and the metric."""

    points: Mapping[str, tuple[str, str, float | None]]
    metrics: frozenset[str]
    flows: tuple[str, ...]


class Plans:
    """Plans by the names that their runs have."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._seen = Cache(4 * RUNS)

    def page(self, plan: str, metric: str, flow: str) -> dict[str, Any]:
        """A plan's runs, oldest first, and its points with a value (or null) of each run.  Raises Unknown."""
        lines = [line for line in self._runs.lines() if line["plan"] == plan]
        if not lines:
            raise Unknown(f"no run here is of a plan {plan[:100]!r}")
        shown = lines[:RUNS][::-1]
        seen = [self._look(str(line["name"]), metric, flow) for line in shown]
        names = {point: one[0] for run in seen for point, one in run.points.items()}
        order = list(dict.fromkeys(point for run in reversed(seen) for point in run.points))
        return {
            "plan": plan,
            "about": next((line["about"] for line in lines if line["about"]), ""),
            "metric": metric,
            "flow": flow,
            "metrics": sorted(frozenset().union(*(run.metrics for run in seen))),
            "flows": list(dict.fromkeys(name for run in seen for name in run.flows)),
            "runs": [
                {key: line[key] for key in ("name", "started", "counts", "state", "kernels", "digest", "overrides")}
                for line in shown
            ],
            "runs_in_all": len(lines),
            "points": [_point(point, names[point], metric, seen) for point in order[:POINTS]],
            "points_in_all": len(order),
        }

    def _look(self, run: str, metric: str, flow: str) -> _Seen:
        found = self._runs.find(run)
        return self._seen.get((run, metric, flow), id(found), lambda: _see(found, metric, flow))


def _see(found: Found, metric: str, flow: str) -> _Seen:
    varying = factors(found.points)
    return _Seen(
        {p.id: (describe(p, varying), p.verdict, number_of(p, metric, flow)) for p in found.points},
        frozenset(name for point in found.points for values in point.metrics.values() for name in values),
        tuple(dict.fromkeys(name for point in found.points for name in point.metrics if name != "*")),
    )


def _point(point: str, name: str, metric: str, seen: list[_Seen]) -> dict[str, Any]:
    there = [run.points.get(point) for run in seen]
    values = [None if one is None else one[2] for one in there]
    known = [value for value in values if value is not None]
    return {
        "id": point,
        "name": name,
        "values": values,
        "verdicts": [None if one is None else one[1] for one in there],
        "last": known[-1] if known else None,
        "shown": show_metric(metric, known[-1] if known else None),
        "change": (known[-1] - known[-2]) / abs(known[-2]) if len(known) > 1 and known[-2] else None,
        "changes": change_points(values),
    }
