# SPDX-License-Identifier: Apache-2.0
"""A metric over two swept parameters as a grid of coloured cells, with the numbers in them where they fit."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from testctl.charts.chart import Columns
from testctl.charts.parts import PLAIN, Spec, as_columns, logarithmic, tooltip
from testctl.charts.style import VIRIDIS
from testctl.charts.sweep_data import Cell, Sweep

NUMBERED, NUMBERED_PANEL = 20, 8
"""Columns, and rows, up to which a cell has its number; the same where there are several panels in a row."""

WIDE = 10
"""Columns from which on the figure takes the whole width of the page."""

_HIGH, _LOW = 24, 12
"""Pixels of a row with numbers, and of one without."""

_LEAST = 96
"""Pixels that the grid is high at least."""

_NARROW = 26
"""Pixels that a column needs for its numbers."""

_UPRIGHT = 30
"""Columns from which on their labels stand upright."""

_TURNED = 60
"""Characters of all labels of the columns in a row; more are turned."""

_DARK, _LIGHT = "#10151a", "#ffffff"
_CONTRAST = 0.19
"""Relative luminance above which dark text has more contrast."""


def heatmap_layers(sweep: Sweep) -> list[Spec]:
    """The cells without a value, those with one, and their numbers.  The data has `heatmap_cells` too."""
    at = {"x": _columns(sweep), "y": _rows(sweep)}
    names = {"x text": sweep.x.key, "by": sweep.by.key, "facet": sweep.facet.key, "value": sweep.metric,
             "range": "from least to greatest" if sweep.intervals else "", "n": "points"}  # fmt: skip
    tips = {"tooltip": tooltip(names)}
    measured, empty = {"field": "y", "valid": True}, {"field": "y", "valid": False}
    layers: list[Spec] = [
        {"transform": [{"filter": empty}],
         "mark": {"type": "rect", "style": "bound", "filled": False, "strokeWidth": 0.6},
         "encoding": {**at, **tips}},
        {"transform": [{"filter": measured}], "mark": {"type": "rect"},
         "encoding": {**at, **tips, "color": _colour(sweep)}},
    ]  # fmt: skip
    if not _numbered(sweep):
        return layers
    width: Spec = {} if sweep.facet.key else {"opacity": {"expr": f"width < {_NARROW * len(sweep.x.values)} ? 0 : 1"}}
    text: Spec = {"type": "text", "fontSize": 10, **width}
    written = {**at, **tips, "text": {"field": "words", "type": "nominal"}}
    marked: list[tuple[Spec, Spec]] = [
        (empty, {"style": "note"}),
        ({"and": [measured, {"field": "light", "equal": False}]}, {"color": _LIGHT}),
        ({"and": [measured, {"field": "light", "equal": True}]}, {"color": _DARK}),
    ]
    numbers: list[Spec] = [
        {"transform": [{"filter": which}], "mark": {**text, **look}, "encoding": written} for which, look in marked
    ]
    return layers + numbers


def heatmap_size(sweep: Sweep) -> Spec:
    """The height of the grid; in a page the axes are added to it."""
    row = _HIGH if _numbered(sweep) else _LOW
    height = max(row * len(sweep.by.values), _LEAST)
    return {"height": height} if sweep.facet.key else {"height": height, "autosize": {"type": "fit-x"}}


def is_wide(sweep: Sweep) -> bool:
    """Whether the figure takes the whole width of a page."""
    return len(sweep.x.values) > WIDE


def columns_of_panels(sweep: Sweep) -> int:
    """Panels in a row at most."""
    return 1 if is_wide(sweep) else 2


def heatmap_cells(sweep: Sweep) -> Columns:
    """What a cell has written in it, and whether its colour is a light one; in the order of the panels' cells."""
    low, high = _domain(sweep)
    return as_columns(("words", "light"), (_texts(sweep, cell, low, high) for cell in _cells(sweep)))


def _texts(sweep: Sweep, cell: Cell, low: float, high: float) -> tuple[str, bool]:
    value = sweep.value(cell)
    if value is None:
        return "–" if cell.missing else "·", False
    shown = value / sweep.unit.size
    share = log(shown / low) / log(high / low) if sweep.log else (shown - low) / (high - low)
    return _brief(shown), _luminance(share) > _CONTRAST


def _brief(value: float) -> str:
    """At most five characters or so."""
    return f"{value:.2f}" if 0.095 <= abs(value) < 1 else f"{value:.1g}" if abs(value) < 1 else f"{value:.3g}"


def _cells(sweep: Sweep) -> Iterator[Cell]:
    return (cell for panel in sweep.panels for line in panel.lines for cell in line.cells)


def _domain(sweep: Sweep) -> tuple[float, float]:
    """The least and the greatest value of a cell, in the unit of the figure; never equal."""
    values = [value / sweep.unit.size for cell in _cells(sweep) if (value := sweep.value(cell)) is not None]
    low, high = min(values), max(values)
    around = abs(low) / 2 or 1.0
    return (low, high) if low < high else (low - around, high + around)


def _numbered(sweep: Sweep) -> bool:
    most = NUMBERED_PANEL if sweep.facet.key and columns_of_panels(sweep) > 1 else NUMBERED
    return len(sweep.x.values) <= most and len(sweep.by.values) <= NUMBERED


def _columns(sweep: Sweep) -> Spec:
    count, characters = len(sweep.x.values), sum(map(len, sweep.x.values))
    angle = -90 if count > _UPRIGHT else -40 if characters > _TURNED or sweep.facet.key else 0
    return _band("x text", sweep.x.key, list(sweep.x.values), angle, count)


def _rows(sweep: Sweep) -> Spec:
    """Words from the top down as written, numbers from the bottom up."""
    values = list(sweep.by.values)
    return _band("by", sweep.by.key, values[::-1] if sweep.by.numbers else values, 0, len(values))


def _band(field: str, title: str, values: list[str], angle: int, count: int) -> Spec:
    small = {"labelFontSize": 8} if count > _UPRIGHT else {}
    return {"field": field, "type": "nominal", "title": title,
            "scale": {"domain": values, "padding": 0.04 if count <= _UPRIGHT else 0},
            "axis": {"labelAngle": angle, "labelOverlap": False, "labelLimit": 160, "grid": False, "domain": False,
                     "ticks": False, **small}}  # fmt: skip


def _colour(sweep: Sweep) -> Spec:
    low, high = _domain(sweep)
    colours = ["#" + bytes(colour).hex() for colour in VIRIDIS]
    legend: Spec = {"title": sweep.label, "gradientLength": 240, "labelExpr": PLAIN, "labelOverlap": "greedy"}
    if sweep.log:
        ticks = logarithmic("y", "", (low, high))["axis"]["values"]
        legend["values"] = [tick for tick in ticks if low <= tick <= high]
    scale = {"type": "log" if sweep.log else "linear", "domain": [low, high], "range": colours, "nice": False}
    return {"field": "y", "type": "quantitative", "legend": legend, "scale": scale}


def _luminance(share: float) -> float:
    """Of the colour at a place of the scale, from 0 to 1, as WCAG 2 defines relative luminance."""
    place = min(max(share, 0.0), 1.0) * (len(VIRIDIS) - 1)
    low, rest = int(place), place % 1
    high = VIRIDIS[min(low + 1, len(VIRIDIS) - 1)]
    parts = [(a + (b - a) * rest) / 255 for a, b in zip(VIRIDIS[low], high, strict=True)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
