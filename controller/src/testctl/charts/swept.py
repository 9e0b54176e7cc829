# SPDX-License-Identifier: Apache-2.0
"""A metric over a swept parameter: lines, points, bars, boxes, cumulative distributions or a heatmap."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from testctl.charts.chart import Chart, Columns
from testctl.charts.heatmap import columns_of_panels, heatmap_cells, heatmap_layers, heatmap_size, is_wide
from testctl.charts.parts import PLAIN, Spec, as_columns, colour, logarithmic, no_data, shape, tooltip
from testctl.charts.sweep_data import Cell, Sweep
from testctl.core.units import show_metric
from testctl.plan.sweep_figures import HEATMAP

FEW = 12
"""Points of one value up to which each of them is drawn."""

_ABOVE = 1.06
"""Times the greatest value is the end of the axis."""

_TURNED = 36
"""Characters of all labels of a category in a row; more are turned."""

_MARKED = 30
"""Values of a distribution up to which each has a mark."""

_LINE, _LETTER = 13, 5.5
"""Pixels of a label of a bound: its height, and the width of a letter."""
_HEIGHT, _WIDTH = 140, 440
"""Pixels of an axis, at least."""

_CELLS = ("x", "x text", "by", "facet", "y", "low", "high", "first", "third", "value", "range", "quartiles", "n")
_POINTS = ("x", "x text", "by", "facet", "y", "value", "point")

POINTS: Spec = {"name": "points"}
"""The data set of single points."""

Bounds = Sequence[tuple[float, str]]
"""What a plan expects of the metric: a value, and words such as "at least 0.9"."""


def swept(sweep: Sweep, bounds: Bounds = ()) -> Chart:
    """The figure, and the same numbers as a table.  bounds: dashed lines; those far from the values are in the note."""
    table = None if sweep.kind == "cdf" else _table(sweep)
    request = {"kind": sweep.kind, "metric": sweep.metric,
               **{name: getattr(sweep, name).key for name in ("x", "by", "facet")}}  # fmt: skip
    more = {"table": table, "asked": request, **({"wide": True} if sweep.kind == HEATMAP and is_wide(sweep) else {})}
    bounds = () if sweep.kind == HEATMAP else bounds
    near = sorted((value, text) for value, text in bounds if _is_near(sweep, value))
    beyond = "; ".join(f"expected {text}: not on this axis" for value, text in bounds if (value, text) not in near)
    note = "; ".join(filter(None, (sweep.caption, beyond)))
    spoken = f"{sweep.title}. {note}"
    if not sweep.values:
        nothing = no_data(sweep.title, "no value")
        return Chart(nothing.spec, nothing.data, sweep.title, note, spoken, more=more)
    lines: dict[str, list[Any]] = {
        "y": [value / sweep.unit.size for value, _ in near],
        "text": [f"expected {text}" for _, text in near],
        "rise": _rises(sweep, near),
    }
    layers = _layers(sweep, lines["y"])
    data: dict[str, Columns] = {"cells": _cells(sweep), "points": _points(sweep), "bounds": lines}
    layers += _bounds("x" if sweep.kind == "cdf" else "y") if near else []
    if sweep.facet.key:
        data["cells"] = _in_panels(layers, data["cells"], data["points"])
    used = {layer.get("data", {}).get("name", "cells") for layer in layers}
    size = heatmap_size(sweep) if sweep.kind == HEATMAP else {}
    spec = _faceted(sweep, {**size, "layer": layers}) if sweep.facet.key else {**size, "layer": layers}
    return Chart({"data": {"name": "cells"}, **spec}, {name: data[name] for name in data if name in used | {"cells"}},
                 sweep.title, note, spoken, more=more)  # fmt: skip


def _faceted(sweep: Sweep, spec: Spec) -> Spec:
    facet = {"field": "facet", "type": "nominal", "sort": list(sweep.facet.values), "title": sweep.facet.key}
    return {"facet": facet, "columns": columns_of_panels(sweep) if sweep.kind == HEATMAP else 3, "spec": spec}


def _in_panels(layers: Sequence[Spec], cells: Columns, points: Columns) -> Columns:
    """The cells with the points: Vega-Lite gives each panel its part of one data set, and all of any other."""
    if not any(layer.get("data") == POINTS for layer in layers):
        return cells
    for layer in layers:
        if "data" not in layer:
            layer["transform"] = [{"filter": "!isValid(datum.point)"}]
        elif layer["data"] == POINTS:
            del layer["data"]
            layer["transform"] = [{"filter": "isValid(datum.point)"}]
    sizes = [len(columns["by"]) for columns in (cells, points)]
    return {name: [value for columns, size in zip((cells, points), sizes, strict=True)
                   for value in columns.get(name, [None] * size)]
            for name in dict.fromkeys([*cells, *points])}  # fmt: skip


def _layers(sweep: Sweep, bounds: Sequence[float]) -> list[Spec]:
    if sweep.kind == HEATMAP:
        return heatmap_layers(sweep)
    return _distribution(sweep) if sweep.kind == "cdf" else _over_x(sweep, bounds)


def _over_x(sweep: Sweep, bounds: Sequence[float]) -> list[Spec]:
    """Layers of kinds metric and box."""
    several, few = sweep.intervals, 1 < sweep.most <= FEW
    category = sweep.kind == "box" or not sweep.x.numbers
    x, y = _x(sweep, category), _y(sweep, bounds)
    at = {"x": x, "y": y, "color": colour("by", sweep.by.values, sweep.by.key)}
    offset: Spec = {}
    if category and sweep.by.key:
        offset = {"xOffset": {"field": "by", "type": "nominal", "scale": {"domain": list(sweep.by.values)}}}
    names = {"x text": sweep.x.key, "by": sweep.by.key, "facet": sweep.facet.key, "value": sweep.metric}
    tips = tooltip({**names, "range": "from least to greatest" if several else "",
                    "quartiles": "quartiles" if sweep.kind == "box" else "", "n": "points"})  # fmt: skip
    encoded = {**at, **offset, "tooltip": tips}
    ends = {**at, **offset, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    if sweep.kind == "box":
        return [
            {"mark": {"type": "rule"}, "encoding": ends},
            {"mark": {"type": "bar", "fillOpacity": 0.4},
             "encoding": {**encoded, "y": {**y, "field": "first"}, "y2": {"field": "third"}}},
            {"mark": {"type": "tick", "thickness": 3}, "encoding": encoded},
        ]  # fmt: skip
    marked = {"mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
              "encoding": {**encoded, "shape": shape("by", sweep.by.values, sweep.by.key)}}  # fmt: skip
    each = {"data": POINTS, "mark": {"type": "point", "filled": True, "size": 28, "opacity": 0.5},
            "encoding": {**at, **offset, "tooltip": tooltip({**names, "point": "point"})}}  # fmt: skip
    if category:
        if few:
            return [each, {"mark": {"type": "tick", "thickness": 2}, "encoding": encoded}]
        bar = marked if sweep.log else {"mark": {"type": "bar", "fillOpacity": 0.85}, "encoding": encoded}
        range_of = {"mark": {"type": "rule", "style": "ink"}, "encoding": {**ends, "color": {"value": None}}}
        return [bar, range_of] if several else [bar]
    line = {"mark": {"type": "line", "strokeWidth": 1.6}, "encoding": at}
    if few:
        return [line, each, marked]
    return [{"mark": {"type": "rule"}, "encoding": ends}, line, marked] if several else [line, marked]


def _distribution(sweep: Sweep) -> list[Spec]:
    x = {
        "field": "y",
        "type": "quantitative",
        "title": sweep.label,
        "scale": {"zero": False},
        "axis": {"labelExpr": PLAIN},
    }
    if sweep.log:
        x = logarithmic("y", sweep.label, [value / sweep.unit.size for value in sweep.values])
    y = {"field": "share", "type": "quantitative", "title": "share of points", "scale": {"domain": [0, 1]},
         "axis": {"format": ".0%"}}  # fmt: skip
    encoded = {"x": x, "y": y, "color": colour("by", sweep.by.values, sweep.by.key)}
    names = {"by": sweep.by.key, "facet": sweep.facet.key, "value": f"{sweep.metric} at most", "at most": "share",
             "n": "points", "point": "point"}  # fmt: skip
    marked = len(sweep.values) <= _MARKED * len(sweep.by.values)
    mark = {"type": "point", "filled": True, "size": 30 if marked else 60, "opacity": 1 if marked else 0}
    return [
        {"mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.6}, "encoding": encoded},
        {"mark": mark,
         "encoding": {**encoded, "shape": shape("by", sweep.by.values, sweep.by.key), "tooltip": tooltip(names)}},
    ]  # fmt: skip


def _x(sweep: Sweep, category: bool) -> Spec:
    if category:
        turned = sum(map(len, sweep.x.values)) > _TURNED
        return {"field": "x text", "type": "nominal", "title": sweep.x.key,
                "scale": {"domain": list(sweep.x.values), "paddingInner": 0.2, "paddingOuter": 0.1},
                "axis": {"labelAngle": -40 if turned else 0, "labelOverlap": False, "labelLimit": 200,
                         "grid": False}}  # fmt: skip
    numbers = list(sweep.x.numbers)
    names = f"{json.dumps(list(sweep.x.values))}[indexof({json.dumps(numbers)}, datum.value)]"
    scale = {**({"type": "log"} if sweep.x.log else {"zero": False}), "nice": False, "padding": 12}
    return {"field": "x", "type": "quantitative", "title": sweep.x.key, "scale": scale,
            "axis": {"values": numbers, "labelExpr": names, "labelOverlap": "greedy"}}  # fmt: skip


def _y(sweep: Sweep, bounds: Sequence[float]) -> Spec:
    """The same in all panels; from 0, unless the axis is logarithmic or a value is negative."""
    values = [*(value / sweep.unit.size for value in sweep.values), *bounds]
    low, high = min(values), max(values)
    if sweep.log:
        return logarithmic("y", sweep.label, values)
    scale: Spec = {"zero": True} if low < 0 else {"domainMin": 0, "domainMax": (high or 1.0) * _ABOVE, "nice": False}
    return {"field": "y", "type": "quantitative", "title": sweep.label, "scale": scale, "axis": {"labelExpr": PLAIN}}


def _is_near(sweep: Sweep, value: float) -> bool:
    """Whether a bound can be drawn without making the values small."""
    if not sweep.values or (sweep.log and value <= 0):
        return False
    low, high = min(0.0, *sweep.values), max(sweep.values)
    return min(sweep.values) / 10 <= value <= 10 * high if sweep.log else 2 * low <= value <= 2 * (high or 1.0)


def _rises(sweep: Sweep, bounds: Bounds) -> list[float]:
    """By how many pixels the label of each bound is raised, so that none is written over another.  bounds: ascending"""
    scale = math.log10 if sweep.log else float
    ends = [scale(value) for value in (*sweep.values, *dict(bounds), *([] if sweep.log else [0.0]))]
    across, free, rises = sweep.kind == "cdf", -math.inf, list[float]()
    for value, text in bounds:
        at = scale(value) / (max(ends) - min(ends) or 1.0) * (_WIDTH if across else _HEIGHT)
        if across:
            rises.append(rises[-1] + _LINE if at < free else 0.0)
            free = at + _LETTER * len(f"expected {text}")
        else:
            rises.append(max(free - at, 0.0))
            free = at + rises[-1] + _LINE
    return rises


def _bounds(axis: str) -> list[Spec]:
    across = axis == "x"
    place = {axis: {"field": "y", "type": "quantitative"}}
    text = {"type": "text", "style": "note", "align": "left" if across else "right", "baseline": "bottom",
            "dx": 4 if across else 0, "dy": {"expr": "-3 - datum.rise"}, "fontSize": 10}  # fmt: skip
    end = {"y": {"value": "height"}} if across else {"x": {"value": "width"}}
    return [
        {"data": {"name": "bounds"}, "mark": {"type": "rule", "style": "bound"}, "encoding": place},
        {"data": {"name": "bounds"}, "mark": text, "encoding": {**place, **end, "text": {"field": "text"}}},
    ]


def _every(sweep: Sweep) -> Iterator[tuple[list[Any], Cell]]:
    """Where each cell is: x, x as written, by, facet."""
    for panel in sweep.panels:
        for line in panel.lines:
            for index, cell in enumerate(line.cells):
                number = sweep.x.numbers[index] if sweep.x.numbers else None
                yield [number, sweep.x.values[index], line.name, panel.name], cell


def _cells(sweep: Sweep) -> Columns:
    if sweep.kind == "cdf":
        return as_columns((*_POINTS, "share", "at most", "n"), _shares(sweep))
    cells = as_columns(_CELLS, (_row(sweep, place, cell) for place, cell in _every(sweep)))
    return {**cells, **heatmap_cells(sweep)} if sweep.kind == HEATMAP else cells


def _row(sweep: Sweep, place: list[Any], cell: Cell) -> list[Any]:
    quartiles = cell.quartiles or (None, None)
    value = sweep.value(cell)
    numbers = [None if v is None else v / sweep.unit.size for v in (value, cell.lo, cell.hi, *quartiles)]
    ranges = [_between(sweep, ends) for ends in ((cell.lo, cell.hi), quartiles)]
    return [*place, *numbers, show_metric(sweep.metric, value), *ranges, cell.n]


def _points(sweep: Sweep) -> Columns:
    return as_columns(_POINTS, (
        [*place, value / sweep.unit.size, show_metric(sweep.metric, value), name]
        for place, cell in _every(sweep) for value, name in zip(cell.values, cell.names, strict=False)
    ))  # fmt: skip


def _shares(sweep: Sweep) -> Iterator[list[Any]]:
    """Of kind cdf: each value and the share of values up to it."""
    for place, cell in _every(sweep):
        for n, (value, name) in enumerate(zip(cell.values, cell.names, strict=False)):
            read, shown = value / sweep.unit.size, show_metric(sweep.metric, value)
            if not n:
                yield [*place, read, shown, name, 0.0, "0 %", cell.n]
            share = (n + 1) / cell.n
            yield [*place, read, shown, name, share, f"{100 * share:.3g} %", cell.n]


def _between(sweep: Sweep, ends: tuple[float | None, float | None]) -> str:
    return " … ".join(show_metric(sweep.metric, end) for end in ends) if None not in ends else ""


def _table(sweep: Sweep) -> dict[str, Any]:
    """The figure as a table: {"heads": texts, "names": how many of them name a row, "rows": texts}."""
    keys = [axis.key for axis in (sweep.facet, sweep.by) if axis.key]
    rows = [
        [*(name for name, axis in ((panel.name, sweep.facet), (line.name, sweep.by)) if axis.key),
         *(_cell_text(sweep, cell) for cell in line.cells)]
        for panel in sweep.panels for line in panel.lines
    ]  # fmt: skip
    first, *others = sweep.x.values
    return {"heads": [*keys, f"{sweep.x.key} {first}", *others], "names": len(keys), "rows": rows}


def _cell_text(sweep: Sweep, cell: Cell) -> str:
    if not cell.n:
        return "no value" if cell.missing else "·"
    shown = show_metric(sweep.metric, sweep.value(cell))
    return f"{shown} ({_between(sweep, (cell.lo, cell.hi))}, {cell.n} points)" if cell.n > 1 else shown
