# SPDX-License-Identifier: Apache-2.0
"""Expectations of a run for reading: the bound as the plan writes it, and the values of the points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.core.point import POINT_WIDE, is_background
from testctl.core.units import show_metric
from testctl.plan import Written, written_bounds
from testctl.results import RunPoint
from testctl.results.layout import PLAN


@dataclass(frozen=True)
class Judged:
    """An expectation and what came of it; `points` are those that determined its verdict."""

    name: str
    verdict: str
    metric: str
    detail: str
    points: frozenset[str]
    written: Written = field(default_factory=Written)
    observed: str = ""

    @property
    def bound(self) -> str:
        """ "≥ 0.9"; "" where the kept plan can't be read."""
        return self.written.text

    def worst(self, points: Sequence[RunPoint]) -> str:
        """The value that is furthest on the wrong side of its bound, or the range where either side may be wrong."""
        values = _values(self.metric, self.written.flows, points)
        if values and self.written.one_sided:
            return show_metric(self.metric, min(values) if self.written.low else max(values))
        return _range(self.metric, values)


def judged(summary: Mapping[str, Any], points: Sequence[RunPoint], plan_text: str) -> list[Judged]:
    """The expectations of a run, those that do not pass first, otherwise in the plan's order."""
    try:
        bounds = written_bounds(plan_text, PLAN)
    except PlanError:
        bounds = {}  # a plan of another version; its run is shown all the same
    entries = summary.get("expectations") or ()
    listed = [_judged(item, bounds.get(item["name"], Written()), points) for item in entries]
    return sorted(listed, key=lambda expectation: expectation.verdict == "pass")


def _judged(item: Mapping[str, Any], bound: Written, points: Sequence[RunPoint]) -> Judged:
    metric, by = item.get("metric", ""), frozenset(item.get("points", ()))
    values = _values(metric, bound.flows, [point for point in points if point.id in by])
    detail, observed = item.get("detail", ""), _range(metric, values)
    return Judged(item["name"], item["verdict"], metric, detail, by, bound, observed)


def _values(metric: str, flows: Sequence[str], points: Sequence[RunPoint]) -> list[float]:
    """The metric at these points: of the point as a whole where it is such, else of the named flows or of all."""
    values: list[float | str | None] = []
    for point in points:
        own = {flow: of for flow, of in point.metrics.items() if flow != POINT_WIDE and not is_background(flow)}
        named = [own[flow] for flow in flows if flow in own] or list(own.values())
        wide = point.metrics.get(POINT_WIDE, {})
        values += [of.get(metric) for of in ([wide] if metric in wide else named)]
    return [float(value) for value in values if isinstance(value, int | float)]


def _range(metric: str, values: Sequence[float]) -> str:
    """ "0.98 … 1"."""
    return " … ".join(dict.fromkeys(show_metric(metric, end) for end in (min(values), max(values)))) if values else ""
