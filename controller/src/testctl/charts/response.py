# SPDX-License-Identifier: Apache-2.0
"""Response functions: window against loss rate, both logarithmic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from testctl.charts.chart import Chart
from testctl.charts.parts import as_columns, colour, logarithmic, shape, tooltip


@dataclass(frozen=True)
class ResponseCurve:
    """Of one congestion control: loss rates, ascending, and the mean window in segments of the flows that had them."""

    name: str
    rates: tuple[float, ...]
    windows: tuple[float, ...]


@dataclass(frozen=True)
class Response:
    """What a figure of kind `response` shows; `reno` is the line to compare with, at the rates of all curves."""

    title: str
    curves: tuple[ResponseCurve, ...]
    reno: ResponseCurve


def responses(shown: Response) -> Chart:
    """A line for each congestion control, and Reno's as a dashed one; the same numbers as a table."""
    names = [curve.name for curve in shown.curves]
    rates = [rate for curve in (*shown.curves, shown.reno) for rate in curve.rates]
    windows = [window for curve in (*shown.curves, shown.reno) for window in curve.windows]
    x, y = logarithmic("rate", "rate of random loss", rates), logarithmic("window", "window (segments)", windows)
    encoding = {"x": x, "y": y}
    lines = {**encoding, "color": colour("cc", names, "cc")}
    tips = tooltip({"cc": "cc", "loss": "rate of random loss", "said": "window"})
    end = {"mark": {"type": "text", "style": "note", "align": "left", "dx": 4, "dy": -8, "fontSize": 10}}
    layers = [
        {"data": {"name": "reno"}, "mark": {"type": "line", "style": "bound"}, "encoding": encoding},
        {"data": {"name": "words"}, **end, "encoding": {**encoding, "text": {"field": "text"}}},
        {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": lines},
        {"mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
         "encoding": {**lines, "shape": shape("cc", names, "cc"), "tooltip": tips}},
    ]  # fmt: skip
    reno = as_columns(("rate", "window"), zip(shown.reno.rates, shown.reno.windows, strict=True))
    first = as_columns(("rate", "window", "text"), [(shown.reno.rates[0], shown.reno.windows[0], shown.reno.name)])
    data = {"curves": as_columns(("rate", "window", "cc", "loss", "said"), _rows(shown)), "reno": reno, "words": first}
    return Chart({"data": {"name": "curves"}, "layer": layers}, data, shown.title,
                 spoken=f"{shown.title}: window over rate of random loss of {', '.join(names)}",
                 more={"table": _table(shown)})  # fmt: skip


def _rows(shown: Response) -> Iterator[list[Any]]:
    for curve in shown.curves:
        for rate, window in zip(curve.rates, curve.windows, strict=True):
            yield [rate, window, curve.name, f"{rate:.3g}", f"{window:.4g} segments"]


def _table(shown: Response) -> dict[str, Any]:
    rates = shown.reno.rates
    windows = [dict(zip(curve.rates, curve.windows, strict=True)) for curve in (*shown.curves, shown.reno)]
    rows = [
        [curve.name, *(f"{of[rate]:.4g}" if rate in of else "–" for rate in rates)]
        for curve, of in zip((*shown.curves, shown.reno), windows, strict=True)
    ]
    return {"heads": ["cc", *(f"{rate:.3g}" for rate in rates)], "names": 1, "rows": rows}
