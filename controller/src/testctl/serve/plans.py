# SPDX-License-Identifier: Apache-2.0
"""All runs of a plan: one metric of each of its points over them, and where its level changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from testctl.compare import change_points
from testctl.core.point import POINT_WIDE
from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.core.units import show_metric
from testctl.report.factors import describe, factors
from testctl.report.metrics import number_of
from testctl.report.run_page import Found
from testctl.results import layout
from testctl.serve.cache import Cache
from testctl.serve.listing import Unknown
from testctl.serve.runs import Runs

RUNS = 60
"""Runs that are shown, the newest."""

POINTS = 1000
"""Points that are shown: changed points first, then the points of the newest runs."""

DIFFERENCES = ("verdict", "level", "digest", "")
"""What differs between the last two runs of a point, the most important first; "": nothing."""


@dataclass(frozen=True)
class _Seen:
    """A run as its plan's page needs it: of each point its name, verdict, the metric and the digest.

    Where the clock is real, digests differ each time and are "".
    """

    points: Mapping[str, tuple[str, str, float | None, str]]
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
        there = []
        for line in lines[:RUNS][::-1]:
            with suppress(Unknown):  # it was removed since it was listed
                there.append((line, self._look(str(line["name"]), metric, flow)))
        shown, seen = [line for line, _ in there], [run for _, run in there]
        names = {point: one[0] for run in seen for point, one in run.points.items()}
        order = dict.fromkeys(point for run in reversed(seen) for point in run.points)
        exact = all(line["exact"] for line in shown)
        points = sorted((_point(point, names[point], metric, seen, exact) for point in order), key=_rank)
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
            "points": points[:POINTS],
            "points_in_all": len(points),
        }

    def _look(self, run: str, metric: str, flow: str) -> _Seen:
        return self._runs.kept(self._seen, run, lambda whole: _see(whole, metric, flow), metric, flow)


def _see(run: Found, metric: str, flow: str) -> _Seen:
    varying = factors(run.points)
    exact = kind_of(str(run.summary.get("testbed") or DEFAULT)).deterministic
    return _Seen(
        {
            p.id: (describe(p, varying), p.verdict, number_of(p, metric, flow), p.digest if exact else "")
            for p in run.points
        },
        frozenset(name for point in run.points for values in point.metrics.values() for name in values),
        tuple(dict.fromkeys(name for point in run.points for name in point.metrics if name != POINT_WIDE)),
    )


def _rank(point: Mapping[str, Any]) -> tuple[int, bool]:
    """Points that changed first, and of those that did not the ones that do not pass."""
    return DIFFERENCES.index(point["differs"]), point["verdicts"][-1] in ("pass", None)


def _point(point: str, name: str, metric: str, seen: list[_Seen], exact: bool) -> dict[str, Any]:
    there = [run.points.get(point) for run in seen]
    values = [None if one is None else one[2] for one in there]
    known = [value for value in values if value is not None]
    levels = change_points(values, exact=exact)
    return {
        "id": point,
        "name": name,
        "values": values,
        "verdicts": [None if one is None else one[1] for one in there],
        "last": known[-1] if known else None,
        "shown": show_metric(metric, known[-1] if known else None),
        "change": (known[-1] - known[-2]) / abs(known[-2]) if len(known) > 1 and known[-2] else None,
        "changes": levels,
        "differs": _differs(
            [run for run in there if run is not None and run[1] != layout.UNJUDGED], new_level=len(values) - 1 in levels
        ),
    }


def _differs(there: Sequence[tuple[str, str, float | None, str]], *, new_level: bool) -> str:
    """What differs between the last two runs that have a point, a name of DIFFERENCES."""
    if len(there) < 2:
        return ""
    (_, was, _, before), (_, became, _, now) = there[-2:]
    if was != became:
        return "verdict"
    return "level" if new_level else "digest" if before != now else ""
