# SPDX-License-Identifier: Apache-2.0
"""PNG figures: those that a plan asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image
from testctl_agent.system import durable

from testctl.curves import Lane, Line, lanes, lines_of, lines_of_connections, shown_ns
from testctl.metrics.recovery import flow_recoveries
from testctl.plan import FigureSpec
from testctl.plan.request_figures import REQUEST_KINDS
from testctl.plan.sweep_figures import SWEEP_KINDS
from testctl.records import Records
from testctl.report.completions import CompletionFigure, completion_figure
from testctl.report.draw import draw_sequence, draw_throughput, new_figure, tidy
from testctl.report.draw_completions import draw_completions
from testctl.report.draw_response import draw_response
from testctl.report.draw_sweep import Facet, draw_sweep, facets
from testctl.report.draw_time_sequence import draw_time_sequence
from testctl.report.figure_spec import first_match, matching, missing, specs_of
from testctl.report.response import Response, response
from testctl.report.stalls import Stall, read_stalls
from testctl.report.sweep import sweep_of
from testctl.results import Run, RunPoint
from testctl.results.atomic import naming_path
from testctl.results.layout import PAPER


@dataclass(frozen=True)
class Recorded:
    """A point that is drawn: its records and its stalls."""

    point: RunPoint
    records: Records
    stalls: Sequence[Stall]

    @property
    def end_ns(self) -> int:
        return shown_ns(self.point.point, int(self.records.column("time_ns").max()))

    def lane(self, flow: str, connection: int) -> Lane | None:
        """A connection of the flow, of those there are in order; of the first flow where none is named."""
        found = [lane for name in self.records.flows for lane in sorted(lanes(self.records)) if lane[0] == name]
        named = [lane for lane in found if lane[0] == (flow or found[0][0])]
        return named[connection] if connection < len(named) else None

    def connections(self, flow: str) -> list[Line]:
        """The throughput of each connection of a flow."""
        return lines_of_connections(self.records, flow)

    def lines(self, lane: Lane) -> dict[str, Line]:
        """Of its time-sequence figure."""
        return {line.name: line for line in lines_of(self.records, "seq", lane)}


def _recorded(point: RunPoint) -> Recorded | None:
    records = point.records()
    if records is None or not records.packets.num_rows:
        return None
    return Recorded(point, records, read_stalls(point.stalls(), None))


Shown = Recorded | Response | CompletionFigure | Facet | str
Panel = tuple[FigureSpec, Shown]
"""A figure and what it shows, or why there is nothing."""


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
    read: dict[str, Recorded | None] = {}
    figures = [[(spec, shown) for shown in _shown(spec, run, read)] for spec in specs]
    panels = [panel for figure in figures for panel in figure]
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
    for number, figure in enumerate(figures, 1):
        written.append(save_figure(_alone(figure), out_dir / f"paper-{number}.png"))
    return written


def _alone(panels: Sequence[Panel]) -> Figure:
    """A figure by itself, with its panels side by side."""
    columns = min(len(panels), 3)
    lines = -(-len(panels) // columns)
    figure = new_figure(6.4 if columns == 1 else 4.6 * columns, 3.7 * lines)
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    _draw_panels(grid, panels)
    for spare in grid[len(panels) :]:
        spare.set_axis_off()
    return figure


def _shown(spec: FigureSpec, run: Run, read: dict[str, Recorded | None]) -> Sequence[Shown]:
    """What the panels of a figure show: one panel, or one for each value of `facet`.  read: points read so far."""
    if spec.kind in SWEEP_KINDS:
        return facets(sweep_of(spec, run.points)) if matching(spec, run.points) else [missing(spec, run.points)]
    if spec.kind == "response":
        shown = response(spec, run.points)
        return [shown if shown.curves else _nothing(spec, run, "no point has a rate of random loss and a window")]
    if spec.kind in REQUEST_KINDS:
        made = completion_figure(spec, run.points)
        return [made if made.lines else _nothing(spec, run, "no point has requests, or no rate is set on their path")]
    point = first_match(spec, run.points)
    if point is not None and point.id not in read:
        read[point.id] = _recorded(point)
    found = None if point is None else read[point.id]
    return [missing(spec, run.points) if found is None else found]


def _nothing(spec: FigureSpec, run: Run, why: str) -> str:
    return missing(spec, run.points) if first_match(spec, run.points) is None else why


def _draw_panels(grid: Any, panels: Sequence[Panel]) -> None:
    top, rates = 0.0, []
    for axes, (spec, shown) in zip(grid, panels, strict=False):
        if isinstance(shown, str):
            _empty(axes, spec.title, shown)
            continue
        if isinstance(shown, Response):
            draw_response(axes, shown)
            continue
        if isinstance(shown, CompletionFigure):
            draw_completions(axes, shown)
            continue
        if isinstance(shown, Facet):
            draw_sweep(axes, shown)
            continue
        span = (spec.from_ns / 1e9, (spec.to_ns or shown.end_ns) / 1e9)
        lane = shown.lane(spec.flow, spec.connection)
        if spec.kind in ("throughput", "connections"):
            lines = {line.name: line for line in lines_of(shown.records, "throughput", None)}
            chosen = [lines[name] for name in shown.records.flows if name in lines and spec.flow in ("", name)]
            if spec.kind == "connections":
                chosen = [of_each for line in chosen for of_each in shown.connections(line.name)]
            draw_throughput(axes, chosen, spec.bin_ns, shown.end_ns, spec.title, span)
            rates.append(axes)
            top = max(top, float(axes.get_ylim()[1]))
        elif lane is None:
            _empty(axes, spec.title)
        elif spec.kind == "time_sequence":
            recoveries = [one for one in flow_recoveries(shown.records, lane[0]) if one.conn == lane[1]]
            draw_time_sequence(axes, shown.lines(lane), recoveries, spec.title, (spec.from_ns, spec.to_ns))
        else:
            stalls = [stall for stall in shown.stalls if (stall.flow, stall.conn) == lane]
            draw_sequence(axes, shown.lines(lane), stalls, spec.title, span, words=8)
    if len({axes.get_ylabel() for axes in rates}) == 1:
        for axes in rates:
            axes.set_ylim(0, top)


def _empty(axes: Any, title: str, why: str = "not recorded") -> None:
    tidy(axes, title, "", "")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.annotate(why, (0.5, 0.5), xycoords="axes fraction", ha="center", color="#5b6470")


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a PNG at once: drawn in memory, no half-written file, no date in it.

    Its colours are a palette of 256, which shows the same in a third of the bytes.
    """
    whole, drawn = BytesIO(), BytesIO()
    figure.savefig(whole, format="png", metadata={"Software": None})
    with Image.open(whole) as picture:
        few = picture.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(drawn, "PNG", optimize=True)
    with naming_path(path, "the figure was not written; the results are kept"):
        durable.write(path, drawn.getvalue())
    return path
