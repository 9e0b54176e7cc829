# SPDX-License-Identifier: Apache-2.0
"""The figures that a plan asks for, as charts: the same in serve and in files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from testctl.charts import Chart
from testctl.charts.parts import no_data
from testctl.charts.requests import requests
from testctl.charts.response import responses
from testctl.charts.swept import Bounds, swept
from testctl.core.units import show_metric
from testctl.curves import Window, lanes, shown_ns
from testctl.metrics.recovery import flow_recoveries
from testctl.plan import FigureSpec
from testctl.plan.request_figures import REQUEST_KINDS
from testctl.plan.sweep_figures import CURVES, SWEEP_KINDS
from testctl.records import Records
from testctl.report.completions import completion_figure
from testctl.report.factors import describe, factors
from testctl.report.figure_spec import first_match, matching, missing
from testctl.report.response import response
from testctl.report.stalls import read_stalls
from testctl.report.sweep import sweep_of
from testctl.results import RunPoint

PX = 600
"""Buckets of time of a figure of a plan."""

Read = Callable[[RunPoint], Records | None]
_BOUNDS = {"min": "at least", "max": "at most", "equals": "exactly"}


def chart_of(
    spec: FigureSpec, points: Sequence[RunPoint], summary: Mapping[str, Any], read: Read = RunPoint.records
) -> Chart:
    """The figure, or one of words that says why there is nothing to draw.  read: the records of a point."""
    if spec.kind in SWEEP_KINDS:
        chart = swept(sweep_of(spec, points), bounds_of(summary, spec.metric)) if matching(spec, points) else None
    elif spec.kind == "response":
        shown = response(spec, points)
        chart = (
            responses(shown)
            if shown.curves
            else _nothing(spec, points, "no point has a rate of random loss and a window")
        )
    elif spec.kind in REQUEST_KINDS:
        made = completion_figure(spec, points, read)
        why = "no point has requests, or no rate is set on their path"
        chart = requests(made) if made.lines else _nothing(spec, points, why)
    else:
        point = first_match(spec, points)
        chart = None if point is None else _over_time(spec, point, read)
        if point is not None and chart is not None and len(points) > 1:
            of_point = describe(point, factors(points))
            chart = replace(chart, note="; ".join(filter(None, (chart.note, of_point))))
    return no_data(spec.title, missing(spec, points)) if chart is None else chart


def bounds_of(summary: Mapping[str, Any], metric: str) -> Bounds:
    """What the plan of a run expects of a metric, each once."""
    lines: dict[tuple[float, str], None] = {}
    for item in summary.get("expectations") or ():
        if item.get("metric") == metric:
            bounds = item.get("bounds") or {}
            lines |= {(float(bounds[name]), f"{text} {show_metric(metric, bounds[name])}"): None
                      for name, text in _BOUNDS.items() if name in bounds and math.isfinite(bounds[name])}  # fmt: skip
    return tuple(lines)


def _nothing(spec: FigureSpec, points: Sequence[RunPoint], why: str) -> Chart | None:
    return no_data(spec.title, why) if matching(spec, points) else None


def _over_time(spec: FigureSpec, point: RunPoint, read: Read) -> Chart | None:
    from testctl.charts.over_time import Span, over_time, recovery_span

    records = read(point)
    if records is None or not records.packets.num_rows:
        return None
    flow = spec.flow or next(iter(records.flows))
    of_flow = sorted(lane for lane in lanes(records) if lane[0] == flow)
    end = shown_ns(point.point, int(records.column("time_ns").max()))
    if spec.connection >= len(of_flow) or spec.from_ns >= end:
        return no_data(spec.title, "not recorded")
    lane = of_flow[spec.connection]
    window = Window(spec.from_ns, spec.to_ns or end, PX, alone=True)
    if spec.kind in ("throughput", "connections", *CURVES):
        name, spans = spec.kind if spec.kind in CURVES else "throughput", []
    elif spec.kind == "time_sequence":
        recoveries = [recovery for recovery in flow_recoveries(records, flow) if recovery.conn == lane[1]]
        ends = [recovery.exit_ns if recovery.exit_ns >= 0 else end for recovery in recoveries]
        name, spans = "seq", [recovery_span(recovery.entry_ns, last, recovery.fast)
                              for recovery, last in zip(recoveries, ends, strict=True)]  # fmt: skip
    else:
        stalls = [stall for stall in read_stalls(point.stalls(), None) if (stall.flow, stall.conn) == lane]
        name, spans = "seq", [Span(stall.start_ns, stall.end_ns, stall.label) for stall in stalls]
    shown = of_flow if spec.kind == "connections" else [lane]
    chart = over_time(records, name, shown, window, bin_ns=spec.bin_ns if name == "throughput" else 0,
                      singly=spec.kind == "connections", spans=spans, flow=spec.flow)  # fmt: skip
    return replace(chart, title=spec.title)
