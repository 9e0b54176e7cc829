# SPDX-License-Identifier: Apache-2.0
"""A metric of many points over the parameters that are swept: the data of figures of the kinds metric, cdf and box."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import shown
from testctl_agent.spec.units import Bytes, Duration, Quantity, Rate

from testctl.metrics import POINT
from testctl.plan import FigureSpec
from testctl.plan.diagnostics import suggest
from testctl.plan.sweep_figures import MAX_BY, MAX_X, MOST_VALUES, SWEEP_KINDS, title_of
from testctl.report.factors import ABSENT, Factor, factors
from testctl.report.figure_spec import matching, specs_of
from testctl.report.metrics import meaning, one_number
from testctl.report.style import Unit, byte_unit, rate_unit, time_unit
from testctl.results import Run, RunPoint
from testctl.results.layout import UNJUDGED
from testctl.system.text import first_of

COUNTED = ("pass", "fail", UNJUDGED)
"""Verdicts of points whose numbers count, as in comparisons."""

LOG_X, LOG_Y = 8, 100
"""Greatest value over least from which an axis may be logarithmic."""

MAX_LABELS = 9
"""About as many values of x have a label."""

_NAMED = 12
"""Names in an error."""

_SHORT_SYSCTL = "net.ipv4."
_QUANTITIES: tuple[type[Quantity], ...] = (Duration, Rate, Bytes)
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_NS = {"_ns": 1.0, "_us": 1e3, "_ms": 1e6, "_s": 1e9}


@dataclass(frozen=True)
class Axis:
    """A swept parameter.

    key      "entity.parameter"
    values   as written; ascending where they are numbers, else in the order of the points
    numbers  the same in the base unit (ns, bit/s or bytes); empty where they are no numbers
    log      whether the values are spaced for a logarithmic axis
    """

    key: str
    values: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    log: bool = False

    @property
    def labelled(self) -> list[int]:
        """Which values get a label: of many those that are apart by at least a part of the axis."""
        at = np.log(self.numbers) if self.log else np.asarray(self.numbers or range(len(self.values)), dtype=float)
        least = 0.75 * float(at[-1] - at[0]) / MAX_LABELS if len(at) else 0.0
        kept: list[int] = []
        for index, place in enumerate(at):
            if not kept or place - at[kept[-1]] >= least:
                kept.append(index)
        return kept


@dataclass(frozen=True)
class Cell:
    """The points that have the same value of every parameter that is shown.

    values   the metric of each that has one, ascending
    missing  how many have none
    """

    values: tuple[float, ...] = ()
    missing: int = 0

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def y(self) -> float | None:
        """The median; None without values."""
        return float(np.median(self.values)) if self.values else None

    @property
    def lo(self) -> float | None:
        return self.values[0] if self.values else None

    @property
    def hi(self) -> float | None:
        return self.values[-1] if self.values else None

    @property
    def quartiles(self) -> tuple[float, float] | None:
        if not self.values:
            return None
        low, high = np.quantile(self.values, (0.25, 0.75))
        return float(low), float(high)


@dataclass(frozen=True)
class Line:
    """One value of `by`.  cells: one for each value of x; one alone in a figure of kind cdf."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Panel:
    """One value of `facet`; the only panel has the name ""."""

    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Sweep:
    """What a figure shows.

    unit    the metric's values are divided by its size
    log     whether the metric's axis is logarithmic
    points  how many the figure is about
    missing why points have no value -> how many
    over    other parameters, and "repeat", that differ between points of a cell
    of      what a value is where the point has several flows
    """

    title: str
    kind: str
    metric: str
    unit: Unit
    x: Axis
    by: Axis
    facet: Axis
    panels: tuple[Panel, ...]
    log: bool = False
    points: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    over: tuple[str, ...] = ()
    of: str = ""

    @cached_property
    def values(self) -> list[float]:
        """All values."""
        return [value for panel in self.panels for line in panel.lines for cell in line.cells for value in cell.values]

    @property
    def intervals(self) -> bool:
        """Whether a value is of several points."""
        return any(cell.n > 1 for panel in self.panels for line in panel.lines for cell in line.cells)

    @property
    def bars(self) -> bool:
        """Whether x has no order, so that a line over it has no meaning."""
        return self.kind == "metric" and not self.x.numbers

    @property
    def label(self) -> str:
        """The metric with the unit of the axis."""
        return f"{self.metric} ({self.unit.name})" if self.unit.name else self.metric

    @property
    def caption(self) -> str:
        """What one value stands for, what intervals are, and what is missing."""
        most = max((cell.n for panel in self.panels for line in panel.lines for cell in line.cells), default=0)
        parts = [f"values: {self.of}"] if self.of else []
        several = f"{'up to ' if self._uneven else ''}{most} points each" + self._over
        if self.kind == "cdf":
            parts.append(f"{len(self.values)} points")
        elif most > 1:
            what = {"box": "median, quartiles, least and greatest"}.get(self.kind, "median, from least to greatest")
            parts.append(f"{what} of {several}")
        elif most:
            parts.append("one point each")
        if self.missing:
            count = sum(self.missing.values())
            why = ", ".join(f"{many} {reason}" for reason, many in self.missing.items())
            parts.append(f"{count} of {self.points} points {'has' if count == 1 else 'have'} no value: {why}")
        return "; ".join(parts)

    @property
    def _uneven(self) -> bool:
        return len({cell.n for panel in self.panels for line in panel.lines for cell in line.cells if cell.n}) > 1

    @property
    def _over(self) -> str:
        return f" ({', '.join(self.over)})" if self.over else ""

    def to_json(self) -> dict[str, Any]:
        """For the scripts of report and serve."""
        return {
            "title": self.title,
            "kind": self.kind,
            "metric": self.metric,
            "label": self.label,
            "unit": [self.unit.size, self.unit.name],
            "log": self.log,
            "bars": self.bars,
            "caption": self.caption,
            **{name: _axis_json(getattr(self, name)) for name in ("x", "by", "facet")},
            "panels": [
                {"name": panel.name, "lines": [{"name": one.name, "cells": [_cell(c) for c in one.cells]}
                                               for one in panel.lines]}
                for panel in self.panels
            ],
        }  # fmt: skip


def _axis_json(axis: Axis) -> dict[str, Any]:
    return {"key": axis.key, "values": list(axis.values), "numbers": list(axis.numbers), "log": axis.log,
            "labelled": axis.labelled}  # fmt: skip


def _cell(cell: Cell) -> dict[str, Any]:
    found: dict[str, Any] = {"n": cell.n, "missing": cell.missing, "middle": cell.y, "values": list(cell.values)}
    return found | ({"quartiles": list(cell.quartiles)} if cell.quartiles else {})


def sweep_of(spec: FigureSpec, points: Sequence[RunPoint]) -> Sweep:
    """The data of a figure of kind metric, cdf or box, of the points that meet its `when`."""
    chosen = matching(spec, points)
    keys = ("" if spec.kind == "cdf" else spec.x, spec.by, spec.facet)
    at = {point.id: tuple(value_of(point, key) if key else "" for key in keys) for point in chosen}
    x, by, facet = (
        axis_of(key, [at[point.id][place] for point in chosen]) if key else Axis("", ("",))
        for place, key in enumerate(keys)
    )
    found: dict[tuple[str, ...], list[float]] = {}
    lacking: Counter[tuple[str, ...]] = Counter()
    missing: Counter[str] = Counter()
    for point in chosen:
        value = _number(point, spec.metric, spec.flow)
        if value is None or not math.isfinite(value):
            lacking[at[point.id]] += 1
            missing[point.verdict if point.verdict not in COUNTED else "not measured"] += 1
        else:
            found.setdefault(at[point.id], []).append(value)

    def cell(*place: str) -> Cell:
        return Cell(tuple(sorted(found.get(place, ()))), lacking[place])

    panels = tuple(
        Panel(
            third, tuple(Line(second, tuple(cell(first, second, third) for first in x.values)) for second in by.values)
        )
        for third in facet.values
    )
    values = [value for of in found.values() for value in of]
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
        points=len(chosen),
        missing=missing,
        over=_others(chosen, keys),
        of=_of(spec, chosen),
    )


def value_of(point: RunPoint, key: str) -> str:
    """A point's value of "entity.parameter" as written: of its tuples; of one that a group sets, as it was set."""
    entity, _, parameter = key.partition(".")
    names = (parameter, _SHORT_SYSCTL + parameter, parameter.removeprefix(_SHORT_SYSCTL))
    for name in names:
        given = [value for e, p, value in point.tuples if (e, p) == (entity, name)]
        if given:
            return shown(given[-1])
    settings: Mapping[str, Any] = point.point.get("settings", {}).get(entity, {})
    return next((shown(settings[name]) for name in names if name in settings), ABSENT)


def axis_of(key: str, texts: Sequence[str]) -> Axis:
    """The axis of these values; each once."""
    values = list(dict.fromkeys(texts))
    numbers = _numbers(values)
    if not numbers:
        return Axis(key, tuple(values))
    order = sorted(range(len(values)), key=lambda index: numbers[index])
    ascending = tuple(numbers[index] for index in order)
    return Axis(key, tuple(values[index] for index in order), ascending, _spaced_logarithmically(ascending))


def _numbers(values: Sequence[str]) -> list[float]:
    """In the base unit, where all are whole numbers or quantities of one kind; else none (6.1 and 6.12 are kernels)."""
    if all(_WHOLE.fullmatch(value) for value in values):
        return [float(value) for value in values]
    if not all(_WHOLE.fullmatch(value) or value[-1:].isalpha() for value in values):
        return []
    for quantity in _QUANTITIES:
        try:
            return [float(quantity.parse(value)) for value in values]
        except ValueError:
            continue
    return []


def _spaced_logarithmically(numbers: Sequence[float]) -> bool:
    """Whether the steps between ascending values are more even as ratios than as differences."""
    if len(numbers) < 3 or numbers[0] <= 0 or numbers[-1] < LOG_X * numbers[0]:
        return False
    steps = [b - a for a, b in pairwise(numbers)]
    ratios = [float(np.log(b / a)) for a, b in pairwise(numbers)]
    return max(ratios) / min(ratios) < max(steps) / min(steps)


def _wide(values: Sequence[float]) -> bool:
    return len(values) > 2 and min(values) > 0 and max(values) >= LOG_Y * min(values)


def unit_of(metric: str, values: Sequence[float]) -> Unit:
    """The unit in which a metric's values read well; the suffix of its name says what they are in."""
    most = max((abs(value) for value in values), default=0.0)
    if metric.endswith("_bps"):
        return rate_unit(most)
    if metric.endswith("_bytes"):
        return byte_unit(most)
    for suffix, ns in _NS.items():
        if metric.endswith(suffix):
            unit = time_unit(most * ns)
            return Unit(unit.name, unit.size / ns)
    return Unit("", 1.0)


def _number(point: RunPoint, metric: str, flow: str) -> float | None:
    """The metric of a flow, of all flows together, or of the whole point; of a point that measured something."""
    if point.verdict not in COUNTED:
        return None
    wide = point.metrics.get(POINT, {})
    of_point = not any(metric in values for name, values in point.metrics.items() if name != POINT)
    if not flow and not of_point:
        return one_number(point, metric)
    value = wide.get(metric) if of_point else point.metrics.get(flow, {}).get(metric)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _others(points: Sequence[RunPoint], keys: Sequence[str]) -> tuple[str, ...]:
    """Labels of what varies besides the parameters that are shown."""
    shown_rows = [tuple(value_of(point, key) for point in points) for key in keys if key]
    return tuple(
        factor.label
        for factor in factors(points)
        if not any(_same_parts([factor.of[point.id] for point in points], row) for row in shown_rows)
    )


def _same_parts(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether two values are equal in `a` wherever they are in `b`: `a` says nothing that `b` does not."""
    return len(set(zip(a, b, strict=True))) == len(set(b))


def _of(spec: FigureSpec, points: Sequence[RunPoint]) -> str:
    """What one value is of, where points have several flows."""
    if spec.flow:
        return f"of flow {spec.flow}"
    several = any(len(point.metrics.keys() - {POINT}) > 1 for point in points)
    wide = all(spec.metric in point.metrics.get(POINT, {}) for point in points if point.metrics)
    return meaning(spec.metric).partition(", ")[2] if several and not wide else ""


def asked_spec(points: Sequence[RunPoint], kind: str, metric: str, **given: str) -> FigureSpec:
    """A figure that no plan declares.  given: x, by, facet ("entity.parameter"; "" for none) and flow.

    Raises PlanError for what these points have not, naming what they have.
    """
    if kind not in SWEEP_KINDS:
        raise PlanError(f"kind: want one of {', '.join(SWEEP_KINDS)}; got {kind!r}")
    named = {name: given.get(name, "") for name in ("x", "by", "facet")}
    if not named["x"] and kind != "cdf":
        raise PlanError(f"x: want a parameter that is swept, of {_some(swept_keys(points))}; got none")
    if not any(_has(point, metric) for point in points):
        names = sorted({name for point in points for values in point.metrics.values() for name in values})
        raise PlanError(f"metric: want one that the points have{suggest(metric, names)}; got {metric!r}")
    flow = given.get("flow", "")
    flows = dict.fromkeys(name for point in points for name in point.metrics if name != POINT)
    if flow and flow not in flows:
        raise PlanError(f"flow: want one of {_some(list(flows))}; got {flow!r}")
    for name, key in named.items():
        count = len({value_of(point, key) for point in points}) if key else 0
        if key and count < 2:
            raise PlanError(f"{name}: want a parameter that is swept, of {_some(swept_keys(points))}; got {key!r}")
        if count > MOST_VALUES[name]:
            raise PlanError(f"{name}: want a parameter of at most {MOST_VALUES[name]} values; got {key} with {count}")
        if same := next((other for other in named if other != name and key and named[other] == key), ""):
            raise PlanError(f"{name}: want another parameter than {same}; got {key!r}")
    x, by, facet = named.values()
    return FigureSpec(title_of({"metric": metric, **named}), kind, flow=flow, metric=metric, x=x, by=by, facet=facet)


def swept_keys(points: Sequence[RunPoint]) -> list[str]:
    """The parameters that differ between points, as a figure names them."""
    return [factor.key for factor in factors(points) if factor.key != "repeat"]


def _has(point: RunPoint, metric: str) -> bool:
    return any(isinstance(values.get(metric), int | float) for values in point.metrics.values())


def _some(names: Sequence[str]) -> str:
    return first_of(names, _NAMED) or "none"


def default_spec(points: Sequence[RunPoint], summary: Mapping[str, Any]) -> FigureSpec | None:
    """For a plan without a figure of these kinds: what it expects something of, else throughput, over what is swept.

    None without a parameter that is swept or without a number.
    """
    expected = [str(item.get("metric", "")) for item in summary.get("expectations") or () if isinstance(item, Mapping)]
    metrics = dict.fromkeys([*expected, "throughput_bps", "total_throughput_bps"])
    metric = next((name for name in metrics if any(_number(point, name, "") is not None for point in points)), "")
    swept = sorted((one for one in factors(points) if one.key != "repeat"), key=_rank)
    xs = [factor for factor in swept if len(factor.values) <= MAX_X]
    if not metric or not xs:
        return None
    by = next((factor.key for factor in swept if factor is not xs[0] and len(factor.values) <= MAX_BY), "")
    title = title_of({"metric": metric, "x": xs[0].key, "by": by, "facet": ""})
    return FigureSpec(title, "metric", metric=metric, x=xs[0].key, by=by)


def _rank(factor: Factor) -> tuple[int, bool]:
    """Most values first; of as many, numbers first."""
    return -len(factor.values), not _numbers(factor.values)


def sweeps_of_run(run: Run) -> list[Sweep]:
    """Those that the plan of a run declares, or the default one.  Raises PlanError."""
    return sweeps_of(run.points, specs_of(run), run.summary)


def sweeps_of(points: Sequence[RunPoint], specs: Sequence[FigureSpec], summary: Mapping[str, Any]) -> list[Sweep]:
    """Those that a plan declares; of a plan without, the default one."""
    declared = [spec for spec in specs if spec.kind in SWEEP_KINDS]
    default = None if declared else default_spec(points, summary)
    return [sweep_of(spec, points) for spec in (declared or ([default] if default else []))]
