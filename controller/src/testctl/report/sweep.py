# SPDX-License-Identifier: Apache-2.0
"""A metric of many points over the parameters that are swept: the data of figures of SWEEP_KINDS."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from testctl.charts.sweep_data import Axis, Cell, Line, Panel, Sweep
from testctl.core.point import POINT_WIDE, is_background
from testctl.core.quantities import numeric
from testctl.core.units import unit_of
from testctl.plan import FigureSpec
from testctl.plan.formula import PATH_QUANTITIES
from testctl.plan.sweep_figures import FLOW
from testctl.report.factors import ABSENT, Factor, describe, factors
from testctl.report.figure_spec import matching, written_value
from testctl.report.metrics import meaning, number_of
from testctl.results import RunPoint
from testctl.results.layout import UNJUDGED

COUNTED = ("pass", "fail", UNJUDGED)
"""Verdicts of points whose numbers count, as in comparisons."""

_MULTIPLE = re.compile(rf"(?:([0-9]+(?:\.[0-9]+)?)[ *]*)?({'|'.join(PATH_QUANTITIES)})")
LOG_X, LOG_Y = 8, 100
"""Greatest value over least from which an axis may be logarithmic."""


def sweep_of(spec: FigureSpec, points: Sequence[RunPoint]) -> Sweep:
    """The data of a figure of kind metric, cdf, box or heatmap, of the points that meet its `when`."""
    chosen = matching(spec, points)
    keys = ("" if spec.kind == "cdf" else spec.x, spec.by, spec.facet)
    measured = [(point, flow) for point in chosen for flow in (_flows(spec, point) if FLOW in keys else [spec.flow])]
    at = {(point.id, flow): tuple(_place(point, flow, key) for key in keys) for point, flow in measured}
    x, by, facet = (
        axis_of(key, [of[place] for of in at.values()]) if key else Axis("", ("",)) for place, key in enumerate(keys)
    )
    others = _others(chosen, keys)
    values_at: dict[tuple[str, ...], list[tuple[float, str]]] = {}
    lacking: Counter[tuple[str, ...]] = Counter()
    missing: Counter[str] = Counter()
    for point, flow in measured:
        value, place = counted_number(point, spec.metric, flow), at[point.id, flow]
        if value is None or not math.isfinite(value):
            lacking[place] += 1
            missing[point.verdict if point.verdict not in COUNTED else "not measured"] += 1
        else:
            values_at.setdefault(place, []).append((value, describe(point, others)))

    def cell(*place: str) -> Cell:
        of = sorted(values_at.get(place, ()))
        return Cell(tuple(value for value, _ in of), lacking[place], tuple(name for _, name in of))

    panels = tuple(
        Panel(
            third, tuple(Line(second, tuple(cell(first, second, third) for first in x.values)) for second in by.values)
        )
        for third in facet.values
    )
    values = [value for of in values_at.values() for value, _ in of]
    return Sweep(
        title=spec.title,
        kind=spec.kind,
        metric=spec.metric,
        unit=unit_of(spec.metric, values),
        x=x,
        by=by,
        facet=facet,
        panels=panels,
        log=_wide(values),
        points=len(measured),
        missing=missing,
        over=tuple(factor.label for factor in others),
        of=_of(spec, chosen),
    )


def axis_of(key: str, texts: Sequence[str]) -> Axis:
    """The axis of these values; each once."""
    values = list(dict.fromkeys(texts))
    numbers = numbers_of(values)
    if not numbers:
        return Axis(key, tuple(values))
    order = sorted(range(len(values)), key=lambda index: numbers[index])
    ascending = tuple(numbers[index] for index in order)
    return Axis(key, tuple(values[index] for index in order), ascending, _spaced_logarithmically(ascending))


def numbers_of(values: Sequence[str]) -> list[float]:
    """In the base unit (testctl.core.quantities) where they are numbers, or as multiples such as 0.5 bdp; else none."""
    multiples = [match for value in values if (match := _MULTIPLE.fullmatch(value))]
    if len(multiples) == len(values) and len({match[2] for match in multiples}) == 1:
        return [float(match[1] or 1) for match in multiples]
    numbers = numeric(values)
    return [float(value) for value in numbers.base] if numbers else []


def _spaced_logarithmically(numbers: Sequence[float]) -> bool:
    """Whether the steps between ascending values are more even as ratios than as differences."""
    if len(numbers) < 3 or numbers[0] <= 0 or numbers[-1] < LOG_X * numbers[0]:
        return False
    steps = [b - a for a, b in pairwise(numbers)]
    ratios = [float(np.log(b / a)) for a, b in pairwise(numbers)]
    return max(ratios) / min(ratios) < max(steps) / min(steps)


def _wide(values: Sequence[float]) -> bool:
    return len(values) > 2 and min(values) > 0 and max(values) >= LOG_Y * min(values)


def counted_number(point: RunPoint, metric: str, flow: str) -> float | None:
    """The metric of a flow, of all flows together, or of the whole point; of a point that measured something."""
    if point.verdict not in COUNTED:
        return None
    of_point = not any(metric in values for name, values in point.metrics.items() if name != POINT_WIDE)
    return number_of(point, metric, "" if of_point else flow)


def flows_of(points: Sequence[RunPoint]) -> list[str]:
    """The flows of the plan, in its order, without those of the background: a flow's place is its colour."""
    named = (flow["name"] for point in points for flow in point.point.get("flows", ()))
    return [name for name in dict.fromkeys(named) if name and not is_background(name)]


def _flows(spec: FigureSpec, point: RunPoint) -> list[str]:
    return [name for name in flows_of([point]) if spec.flow in ("", name)]


def _place(point: RunPoint, flow: str, key: str) -> str:
    return flow if key == FLOW else written_value(point, key, ABSENT) if key else ""


def _others(points: Sequence[RunPoint], keys: Sequence[str]) -> list[Factor]:
    """What varies besides the parameters that are shown."""
    shown_rows = [tuple(written_value(point, key, ABSENT) for point in points) for key in keys if key not in ("", FLOW)]
    return [
        factor
        for factor in factors(points)
        if not any(_same_parts([factor.of[point.id] for point in points], row) for row in shown_rows)
    ]


def _same_parts(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether two values are equal in `a` wherever they are in `b`: `a` says nothing that `b` does not."""
    return len(set(zip(a, b, strict=True))) == len(set(b))


def _of(spec: FigureSpec, points: Sequence[RunPoint]) -> str:
    """What one value is of, where points have several flows."""
    if FLOW in (spec.x, spec.by, spec.facet):
        return ""
    if spec.flow:
        return f"of flow {spec.flow}"
    several = any(len(point.metrics.keys() - {POINT_WIDE}) > 1 for point in points)
    wide = all(spec.metric in point.metrics.get(POINT_WIDE, {}) for point in points if point.metrics)
    return meaning(spec.metric).partition(", ")[2] if several and not wide else ""
