# SPDX-License-Identifier: Apache-2.0
"""PNG figures: one of each point, and the figures that a plan asks for."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from testctl_agent.system import durable

from testctl.plan import FigureSpec
from testctl.report.draw import (
    draw_cwnd,
    draw_latency,
    draw_queue,
    draw_rtt,
    draw_sequence,
    draw_throughput,
    new_figure,
    tidy,
)
from testctl.report.draw_response import draw_response
from testctl.report.draw_time_sequence import draw_time_sequence
from testctl.report.figure_spec import first_match, missing, specs_of
from testctl.report.response import Response, response
from testctl.report.series import Series, read_series
from testctl.results import Run
from testctl.results.atomic import naming_path
from testctl.results.layout import PAPER

_BIN_NS = 10_000_000

Panel = tuple[FigureSpec, Series | Response | str]
"""A figure and what it shows, or why there is nothing."""


def point_figure(series: Series, title: str, out: Path) -> Path:
    """Six panels of a point: throughput, sequence number, cwnd, RTT, queue, latency.  Raises TestbedError."""
    figure = new_figure(13.5, 7.4)
    figure.suptitle(title, fontsize=12, ha="left", x=0.012)
    axes = figure.subplots(2, 3)
    span = (0.0, series.duration_ns / 1e9)
    draw_throughput(axes[0, 0], series.rates, _BIN_NS, series.duration_ns, "Throughput", span)
    if series.lanes:
        draw_sequence(axes[0, 1], series.lanes[0], series.stalls, f"Sequence number, {series.lanes[0].name}", span)
    else:
        _empty(axes[0, 1], "Sequence number")
    if any(len(lane.cwnd) for lane in series.lanes):
        draw_cwnd(axes[0, 2], series.lanes, span)
    else:
        _empty(axes[0, 2], "Congestion window")
    draw_rtt(axes[1, 0], series.lanes, span)
    if series.queue:
        draw_queue(axes[1, 1], series, span)
    else:
        _empty(axes[1, 1], "Queue")
    draw_latency(axes[1, 2], series.rates)
    return save_figure(figure, out)


def paper_figures(
    run: Run,
    out_dir: Path,
    specs: Sequence[FigureSpec] | None = None,
) -> list[Path]:
    """The figures a plan declares, side by side in `paper.png` and each alone in `paper-<n>.png`.

    specs   by default those of the plan that the run kept
    Throughput panels share one axis, so that they can be compared.  A figure that no point meets says so.
    """
    if specs is None:
        specs = specs_of(run)
    if not specs:
        return []
    series: dict[str, Series | None] = {}
    panels: list[Panel] = []
    for spec in specs:
        if spec.kind == "response":
            shown = response(spec, run.points)
            panels.append((spec, shown if shown.curves else _no_curve(spec, run)))
            continue
        point = first_match(spec, run.points)
        if point is not None and point.id not in series:
            series[point.id] = read_series(point)
        found = None if point is None else series[point.id]
        panels.append((spec, missing(spec, run.points) if found is None else found))
    with naming_path(out_dir, "the figures were not written; the results are kept"):
        out_dir.mkdir(exist_ok=True)
    columns = 2 if len(panels) in (2, 4) else min(len(panels), 3)
    lines = -(-len(panels) // columns)
    whole = new_figure(6.4 * columns, 3.7 * lines)
    grid = whole.subplots(lines, columns, squeeze=False).ravel()
    _draw_panels(grid, panels)
    for spare in grid[len(panels) :]:
        spare.set_axis_off()
    written = [save_figure(whole, out_dir / PAPER)]
    for number, panel in enumerate(panels, 1):
        one = new_figure(6.4, 3.7)
        _draw_panels([one.subplots()], [panel])
        written.append(save_figure(one, out_dir / f"paper-{number}.png"))
    return written


def _no_curve(spec: FigureSpec, run: Run) -> str:
    if first_match(spec, run.points) is None:
        return missing(spec, run.points)
    return "no point has a rate of random loss and a window"


def _draw_panels(grid: Any, panels: Sequence[Panel]) -> None:
    top, rates = 0.0, []
    for axes, (spec, series) in zip(grid, panels, strict=False):
        if isinstance(series, str):
            _empty(axes, spec.title, series)
            continue
        if isinstance(series, Response):
            draw_response(axes, series)
            continue
        span = (spec.from_ns / 1e9, (spec.to_ns or series.duration_ns) / 1e9)
        if spec.kind == "throughput":
            chosen = [rate for rate in series.rates if spec.flow in ("", rate.flow)]
            draw_throughput(axes, chosen, spec.bin_ns, series.duration_ns, spec.title, span)
            rates.append(axes)
            top = max(top, float(axes.get_ylim()[1]))
            continue
        if spec.kind == "time_sequence":
            _draw_time_sequence(axes, spec, series)
            continue
        lanes = [lane for lane in series.lanes if spec.flow in ("", lane.flow)]
        if lanes:
            draw_sequence(axes, lanes[0], series.stalls, spec.title, span, words=8)
        else:
            _empty(axes, spec.title)
    if len({axes.get_ylabel() for axes in rates}) == 1:
        for axes in rates:
            axes.set_ylim(0, top)


def _draw_time_sequence(axes: Any, spec: FigureSpec, series: Series) -> None:
    shown = [one for one in series.time_sequences if spec.flow in ("", one.flow)]
    if shown:
        first, last = shown[0].span_ns
        draw_time_sequence(axes, shown[0], spec.title, (spec.from_ns or first, spec.to_ns or last))
    else:
        _empty(axes, spec.title)


def _empty(axes: Any, title: str, why: str = "not recorded") -> None:
    tidy(axes, title, "", "")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.annotate(why, (0.5, 0.5), xycoords="axes fraction", ha="center", color="#5b6470")


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a PNG at once: drawn in memory, no half-written file, no date in it."""
    drawn = BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    with naming_path(path, "the figure was not written; the results are kept"):
        durable.write(path, drawn.getvalue())
    return path
