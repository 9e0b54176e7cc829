# SPDX-License-Identifier: Apache-2.0
"""What specifications of several figures share: colours and shapes of lines, tooltips, axes, a figure of words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from testctl.charts.chart import Chart, Columns
from testctl.charts.style import LANES

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
"""One for each colour, and one on when the colours begin again: no two lines look alike."""

_IN_A_ROW = 50
"""Characters of a line of a legend, so that it fits into a narrow page."""

PLAIN = "format(datum.value, '~g')"
"""Numbers of an axis as they are: of many labels `format` makes 100 to 1e+2."""

Spec = dict[str, Any]


def colour(name: str, values: Sequence[str], title: str = "", **more: Any) -> Spec:
    """The colour of lines by the field `name`, and the legend; without a title there is none."""
    scale = {"domain": list(values), "range": [LANES[n % len(LANES)] for n in range(len(values))]}
    return {"field": name, "type": "nominal", "scale": scale, "legend": _legend(values, title), **more}


def shape(name: str, values: Sequence[str], title: str = "") -> Spec:
    """Likewise the shape of points; Vega-Lite joins the two legends."""
    shapes = [SHAPES[(n + n // len(LANES)) % len(SHAPES)] for n in range(len(values))]
    return {"field": name, "type": "nominal", "scale": {"domain": list(values), "range": shapes},
            "legend": _legend(values, title)}  # fmt: skip


def _legend(values: Sequence[str], title: str) -> Spec | None:
    if not title:
        return None
    columns = max(_IN_A_ROW // (max(map(len, values), default=0) + 5), 1)
    return {"title": title, "symbolOpacity": 1, **({"columns": columns} if columns < len(values) else {})}


def tooltip(names: Mapping[str, str]) -> list[Spec]:
    """Lines of a tooltip: what stands before a field's value, by the field; those without words are left out."""
    return [{"field": name, "type": "nominal", "title": label} for name, label in names.items() if label]


def logarithmic(name: str, title: str, values: Iterable[float], label: str = PLAIN) -> Spec:
    """A logarithmic axis of these numbers.  label: Vega's expression of a tick's words."""
    known = [value for value in values if value > 0] or [1.0]
    low, high = min(known), max(known)
    digits = (1, 2, 5) if high < 1000 * low else (1,)
    ticks = [digit * 10.0**power for power in range(floor(log10(low)), ceil(log10(high)) + 1) for digit in digits]
    return {"field": name, "type": "quantitative", "title": title,
            "scale": {"type": "log", "domain": [low / 1.2, high * 1.2], "nice": False},
            "axis": {"values": ticks, "labelExpr": label, "labelOverlap": "greedy"}}  # fmt: skip


def as_columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Columns:
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for row in rows:
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return columns


def no_data(title: str, text: str) -> Chart:
    """A figure that says why there is nothing to draw."""
    spec = {
        "data": {"name": "words"},
        "mark": {"type": "text", "style": "note"},
        "encoding": {"text": {"field": "text"}},
    }
    return Chart(spec, {"words": {"text": [text]}}, title, spoken=f"{title}: {text}")
