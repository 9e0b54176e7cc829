# SPDX-License-Identifier: Apache-2.0
"""The scorecard of papers' claims: what was measured over what was published, and each claim in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from testctl.charts.chart import Chart
from testctl.charts.parts import Spec, as_columns
from testctl.charts.style import CLAIM_LOOKS

_LEFT, _WIDTH, _RIGHT, _VERDICT = 600, 380, 420, 300
"""Pixels of the words on the left, of the axis, and on the right; where of these the verdict stands."""
_WIDEST = 10.0
"""Ratios farther from 1 are drawn at the edge, as an arrow."""
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10)
_STRIPE, _BAND = "#8a8f98", "#0072b2"
_LINE = 200
"""Characters of a line of reasons."""


@dataclass(frozen=True)
class Row:
    """A claim in words.

    ratio   measured over published: mean, least and greatest; None where there is none
    within  the relative difference that still counts as reproduced
    """

    claim: str
    source: str
    paper: str
    ours: str
    verdict: str
    ratio: tuple[float, float, float] | None = None
    within: float = 0.0
    lacking: str = ""


def numbers(title: str, note: str, rows: Sequence[Row]) -> Chart:
    """Claims that are numbers, on a logarithmic axis of ratios with the tolerance as a band."""
    span = _span(rows)
    x = {"field": "x", "type": "quantitative", "title": "measured / published",
         "scale": {"type": "log", "domain": [1 / span, span], "nice": False},
         "axis": {"values": [tick for tick in _TICKS if 1 / span <= tick <= span], "grid": False,
                  "labelExpr": "format(datum.value, '~g') + '×'"}}  # fmt: skip
    colour = _colour()
    columns = ["row", "x", "least", "most", "low", "high", "shape", "verdict"]
    data = as_columns(columns, (
        [n, *_clipped(row, span), row.verdict] for n, row in enumerate(rows) if row.ratio is not None
    ))  # fmt: skip
    shape = {"field": "shape", "type": "nominal", "scale": None}
    measured = {"data": {"name": "ratios"}}
    layers: list[Spec] = [
        {**measured, "mark": {"type": "bar", "color": _BAND, "opacity": 0.14, "height": 30},
         "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}}},
        {"data": {"name": "published"}, "mark": {"type": "rule", "style": "bound", "strokeDash": [1, 0]},
         "encoding": {"x": x, "y": None}},
        {**measured, "mark": {"type": "rule", "strokeWidth": 2},
         "encoding": {"x": {**x, "field": "least"}, "x2": {"field": "most"}, "color": colour}},
        {**measured, "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
         "encoding": {"x": x, "color": colour, "shape": shape}},
        {"mark": {"type": "text", "style": "note", "align": "left", "dx": 8, "fontSize": 11},
         "encoding": {"x": {"value": _WIDTH / 2}, "text": {"field": "lacking"}}},
    ]  # fmt: skip
    return _listed(title, note, rows, layers, {"ratios": data, "published": {"x": [1]}})


def properties(title: str, note: str, rows: Sequence[Row]) -> Chart:
    """Claims that are no numbers."""
    return _listed(title, note, rows, [], {})


def reasons(title: str, lines: Sequence[tuple[str, str]]) -> Chart:
    """(claim, why it is not as published)."""
    parts = [
        (part, bold) for claim, why in lines for part, bold in [(claim, True), *((p, False) for p in wrap(why, _LINE))]
    ]
    text = {"type": "text", "align": "left", "baseline": "middle", "fontSize": 11}
    layers = [
        {"data": {"name": name}, "mark": {**text, **look},
         "encoding": {"text": {"field": "text"}, "x": {"value": -_LEFT}}}
        for name, look in (("claims", {"fontWeight": "bold"}), ("reasons", {"style": "note", "dx": 14}))
    ]  # fmt: skip
    data = {name: as_columns(("row", "text"), ([n, part] for n, (part, bold) in enumerate(parts) if bold is which))
            for name, which in (("claims", True), ("reasons", False))}  # fmt: skip
    spec = {"width": _WIDTH, "height": {"step": 18}, "layer": layers, "encoding": {"y": _y(len(parts))}}
    return Chart(spec, data, title)


def _colour() -> Spec:
    scale = {"domain": list(CLAIM_LOOKS), "range": [look.colour for look in CLAIM_LOOKS.values()]}
    return {"field": "verdict", "type": "nominal", "legend": None, "scale": scale}


def _y(count: int) -> Spec:
    scale = {"domain": list(range(count)), "padding": 0}
    return {"field": "row", "type": "ordinal", "axis": None, "scale": scale}


def _listed(title: str, note: str, rows: Sequence[Row], layers: Sequence[Spec], more: dict[str, Any]) -> Chart:
    """The rows with their words: the claim and its source on the left; paper, ours and the verdict on the right."""
    wide = _WIDTH if layers else 0
    columns = as_columns(
        ("row", "claim", "source", "paper", "ours", "said", "verdict", "lacking"),
        ([n, row.claim, row.source, f"paper {row.paper}", f"ours {row.ours}",
          f"{CLAIM_LOOKS[row.verdict].sign} {row.verdict}", row.verdict, row.lacking] for n, row in enumerate(rows)),
    )  # fmt: skip
    right = _VERDICT + (0 if wide else _WIDTH)
    fields: list[tuple[str, int, int, int, Spec]] = [
        ("claim", -_LEFT, -9, _LEFT - 20, {"fontSize": 13}), ("source", -_LEFT, 10, _LEFT - 20, {"style": "note"}),
        ("paper", wide + 14, -9, right - 20, {"fontSize": 12}), ("ours", wide + 14, 10, right - 20, {"style": "note"}),
        ("said", wide + right, 0, 200, {"fontSize": 13, "fontWeight": "bold"}),
    ]  # fmt: skip
    texts = [
        {"mark": {"type": "text", "align": "left", "baseline": "middle", "fontSize": 11, "dy": dy, "limit": limit,
                  **look},
         "encoding": {"x": {"value": x}, "text": {"field": field}, **({"color": _colour()} if field == "said" else {})}}
        for field, x, dy, limit, look in fields
    ]  # fmt: skip
    stripe = {"data": {"name": "even"},
              "mark": {"type": "bar", "color": _STRIPE, "opacity": 0.08, "height": {"band": 1}},
              "encoding": {"x": {"value": -_LEFT - 8}, "x2": {"value": _WIDTH + _RIGHT}}}  # fmt: skip
    spec = {"width": _WIDTH, "height": {"step": 46}, "data": {"name": "claims"}, "layer": [stripe, *layers, *texts],
            "encoding": {"y": _y(len(rows))}}  # fmt: skip
    data = {"claims": columns, "even": {"row": list(range(0, len(rows), 2))}, **more}
    return Chart(spec, data, title, note, f"{title}: {note}")


def _clipped(row: Row, span: float) -> list[Any]:
    """x, least, most, low, high as the axis shows them, and the shape of the mark."""
    assert row.ratio is not None
    mean, *ends = row.ratio
    at = [min(max(value, 1 / span), span) for value in (mean, *ends, 1 - row.within, 1 + row.within)]
    outside = "triangle-left" if mean < 1 / span else "triangle-right" if mean > span else ""
    return [*at, outside or ("circle" if row.verdict == "reproduced" else "diamond")]


def _span(rows: Sequence[Row]) -> float:
    """The largest ratio, or its inverse, on the axis: at least 2."""
    far = [2.0]
    for row in rows:
        if row.ratio is not None:
            mean = row.ratio[0]
            far += [max(mean, 1 / mean) if mean > 0 else _WIDEST, 1 + row.within]
    return min(max(far) * 1.15, _WIDEST)
