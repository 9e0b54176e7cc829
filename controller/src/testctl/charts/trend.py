# SPDX-License-Identifier: Apache-2.0
"""A metric of a point over runs, its levels, and where a new level begins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from testctl.charts.chart import Chart
from testctl.charts.parts import PLAIN, SHAPES, as_columns, tooltip
from testctl.charts.style import BLUE, GREY, SHOWN_LOOKS
from testctl.core.units import show_metric, unit_of

LEAST = 0.01
"""Values that differ by less than this share of them lie in the middle, on an axis of few digits."""

_VERDICTS = tuple(SHOWN_LOOKS)


@dataclass(frozen=True)
class Seen:
    """A run that has the point: its name, when it began, the verdict and the value, None without one."""

    run: str
    started: str
    verdict: str
    value: float | None


def trend(metric: str, runs: Sequence[Seen], changes: Sequence[int]) -> Chart:
    """changes: places in `runs` at which a new level begins."""
    unit = unit_of(metric, [run.value for run in runs if run.value is not None])
    known = [(n, run, run.value / unit.size) for n, run in enumerate(runs) if run.value is not None]
    cells = as_columns(("run", "y", "verdict", "name", "started", "value"), (
        [n, value, run.verdict, run.run, run.started, show_metric(metric, run.value)] for n, run, value in known
    ))  # fmt: skip
    levels = []
    for first, after in pairwise((0, *changes, len(runs))):
        values = [value for n, _, value in known if first <= n < after]
        levels += [[first - 0.4, after - 0.6, fmean(values)]] if values else []
    starts = [run.started[5:16].replace("T", " ") for run in runs]
    x = {"field": "run", "type": "quantitative", "title": "run, by its start (UTC)",
         "scale": {"domain": [-0.6, len(runs) - 0.4], "nice": False},
         "axis": {"values": list(range(len(runs))), "labelExpr": f"{json.dumps(starts)}[datum.value]",
                  "labelOverlap": "greedy", "grid": False}}  # fmt: skip
    y = {"field": "y", "type": "quantitative", "title": f"{metric} ({unit.name})" if unit.name else metric,
         "scale": {"zero": False, **_about_equal([value for _, _, value in known])},
         "axis": {"labelExpr": PLAIN}}  # fmt: skip
    there = [verdict for verdict in _VERDICTS if verdict in cells["verdict"]]
    colour = {"field": "verdict", "type": "nominal", "legend": {"title": "verdict"} if there != ["pass"] else None,
              "scale": {"domain": there, "range": [SHOWN_LOOKS[verdict].colour for verdict in there]}}  # fmt: skip
    shapes = {**colour, "scale": {"domain": there, "range": [SHAPES[_VERDICTS.index(verdict)] for verdict in there]}}
    tips = tooltip({"name": "run", "started": "started (UTC)", "value": metric, "verdict": "verdict"})
    layers = [
        {"data": {"name": "changes"}, "mark": {"type": "rule", "style": "bound"},
         "encoding": {"x": {**x, "field": "at"}}},
        {"data": {"name": "levels"}, "mark": {"type": "rule", "strokeWidth": 2, "strokeDash": [6, 3], "color": GREY},
         "encoding": {"x": {**x, "field": "from"}, "x2": {"field": "to"}, "y": y}},
        {"mark": {"type": "line", "strokeWidth": 1.2, "color": BLUE}, "encoding": {"x": x, "y": y}},
        {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
         "encoding": {"x": x, "y": y, "color": colour, "shape": shapes, "tooltip": tips}},
    ]  # fmt: skip
    summary = f"a new level begins at {', '.join(runs[n].run for n in changes)}" if changes else "no change of level"
    data = {"runs": cells, "levels": as_columns(("from", "to", "y"), levels),
            "changes": {"at": [n - 0.5 for n in changes]}}  # fmt: skip
    return Chart({"height": 300, "data": {"name": "runs"}, "layer": layers}, data, f"{metric} over runs",
                 f"{len(known)} runs; {summary}", f"{metric} over {len(known)} runs: {summary}")  # fmt: skip


def _about_equal(values: Sequence[float]) -> dict[str, list[float]]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    size = max(abs(low), abs(high))
    if size and high - low >= LEAST * size:
        return {}
    middle = (low + high) / 2
    return {"domain": [middle - (LEAST * size or 1.0), middle + (LEAST * size or 1.0)]}
