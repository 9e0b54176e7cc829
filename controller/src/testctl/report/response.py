# SPDX-License-Identifier: Apache-2.0
"""Response functions: the window at each rate of random loss, one curve for each congestion control."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from testctl.charts.response import Response, ResponseCurve
from testctl.metrics.response import reno_window
from testctl.plan import FigureSpec
from testctl.report.figure_spec import matching, specs_of
from testctl.results import Run, RunPoint

RENO_LINE = "Reno: √(3/2) / √p"
"""Mathis, Semke, Mahdavi, Ott, 1997 (testctl.metrics.response)."""


def response(spec: FigureSpec, points: Sequence[RunPoint]) -> Response:
    """Of all points that meet the figure's `when`, all flows or the one that it names."""
    windows: dict[str, dict[float, list[float]]] = {}
    for point in matching(spec, points):
        for flow in point.point.get("flows", []):
            values = point.metrics.get(flow["name"], {})
            rate, window = values.get("random_loss_rate"), values.get("window_segments")
            if spec.flow in ("", flow["name"]) and isinstance(rate, float) and isinstance(window, float):
                windows.setdefault(_congestion_control(point, flow), {}).setdefault(rate, []).append(window)
    curves = tuple(_curve(name, of) for name, of in windows.items())
    rates = tuple(sorted({rate for curve in curves for rate in curve.rates}))
    return Response(spec.title, curves, ResponseCurve(RENO_LINE, rates, tuple(map(reno_window, rates))))


def declared(run: Run) -> list[Response]:
    """Those that the plan of a run declares and that have a curve."""
    found = [response(spec, run.points) for spec in specs_of(run) if spec.kind == "response"]
    return [one for one in found if one.curves]


def _curve(name: str, windows: dict[float, list[float]]) -> ResponseCurve:
    rates = tuple(sorted(windows))
    return ResponseCurve(name, rates, tuple(math.fsum(windows[rate]) / len(windows[rate]) for rate in rates))


def _congestion_control(point: RunPoint, flow: dict[str, Any]) -> str:
    own = flow.get("options", {}).get("cc")
    sender = flow["to"] if flow.get("options", {}).get("reverse") else flow["from"]
    return str(own or point.point.get("settings", {}).get(sender, {}).get("cc", "the kernel's own"))
