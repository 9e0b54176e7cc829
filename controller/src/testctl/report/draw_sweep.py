# SPDX-License-Identifier: Apache-2.0
"""Draws a metric over a swept parameter with matplotlib: lines, bars, boxes or cumulative distributions."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, NullLocator

from testctl.charts.style import LANES
from testctl.report.draw import SOFT, tidy
from testctl.report.draw_response import MARKERS
from testctl.report.sweep_data import Cell, Line, Panel, Sweep

_GROUP = 0.8
"""The share of a step of x that bars or boxes take."""
_WRAP = 92, 62
"""Characters in a line of the caption: of a figure with one panel, with several."""
_MARGIN, _ABOVE_BARS = 1.06, 1.35
"""Times the greatest value is the end of the axis; above bars there is the legend."""


@dataclass(frozen=True)
class Facet:
    """One panel of a figure.  caption: whether the figure's caption stands below it."""

    sweep: Sweep
    panel: Panel
    title: str
    caption: bool = True


def facets(sweep: Sweep) -> list[Facet]:
    """The panels of a figure, in order; the first has the figure's title and caption."""
    names = [f"{sweep.facet.key} = {panel.name}" if sweep.facet.key else sweep.title for panel in sweep.panels]
    if sweep.facet.key:
        names[0] = f"{sweep.title}\n{names[0]}"
    return [Facet(sweep, panel, name, n == 0) for n, (panel, name) in enumerate(zip(sweep.panels, names, strict=True))]


def draw_sweep(axes: Axes, facet: Facet) -> None:
    """One panel; below the first one stands what the values are."""
    sweep, panel = facet.sweep, facet.panel
    if not any(cell.n for line in panel.lines for cell in line.cells):
        axes.annotate("no value", (0.5, 0.5), xycoords="axes fraction", ha="center", color=SOFT)
    if sweep.kind == "cdf":
        _distributions(axes, sweep, panel)
    else:
        places = _places(axes, sweep)
        for index, line in enumerate(panel.lines):
            _DRAWN[sweep.kind](axes, sweep, line, places, index, len(panel.lines))
        _limits(axes, sweep)
    label = sweep.label if sweep.kind == "cdf" else sweep.x.key
    tidy(axes, facet.title, label, "share of points" if sweep.kind == "cdf" else sweep.label)
    if facet.caption:
        wrapped = textwrap.wrap(sweep.caption, _WRAP[len(sweep.panels) > 1])
        axes.annotate("\n".join(wrapped), (0, 0), (-30, -38), xycoords="axes fraction", textcoords="offset points",
                      va="top", fontsize=7.5, color=SOFT)  # fmt: skip
    if sweep.by.key and axes.get_legend_handles_labels()[0]:
        look: dict[str, Any] = {"fontsize": 8, "title_fontsize": 8, "framealpha": 0.8, "edgecolor": "none"}
        if sweep.bars:
            look |= {"ncols": min(len(sweep.by.values), 4), "loc": "upper right"}
        axes.legend(title=sweep.by.key, **look)


def _look(index: int) -> tuple[str, str]:
    return LANES[index % len(LANES)], MARKERS[index % len(MARKERS)]


def _places(axes: Axes, sweep: Sweep) -> list[float]:
    """Where the values of x are, and their labels, as written."""
    by_number = bool(sweep.x.numbers) and sweep.kind == "metric"
    places = list(sweep.x.numbers) if by_number else [float(index) for index in range(len(sweep.x.values))]
    if by_number and sweep.x.log:
        axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    shown = sweep.x.labelled
    axes.set_xticks([places[i] for i in shown], [sweep.x.values[i] for i in shown])
    if max((len(value) for value in sweep.x.values), default=0) * len(shown) > 70:
        axes.tick_params(axis="x", labelrotation=30)
    if not by_number:
        axes.set_xlim(-0.6, len(places) - 0.4)
    return places


def _line(axes: Axes, sweep: Sweep, line: Line, places: Sequence[float], index: int, count: int) -> None:
    if sweep.bars:
        _bars(axes, sweep, line, places, index, count)
        return
    colour, marker = _look(index)
    middle = [np.nan if cell.y is None else cell.y / sweep.unit.size for cell in line.cells]
    axes.plot(places, middle, marker=marker, color=colour, linewidth=1.4, markersize=5, label=line.name)
    if any(cell.n > 1 for cell in line.cells):
        low, high = ([np.nan if v is None else v / sweep.unit.size for v in ends] for ends in _ends(line.cells))
        axes.fill_between(places, low, high, color=colour, alpha=0.13, linewidth=0)
        axes.vlines(places, low, high, color=colour, linewidth=1)


def _ends(cells: Sequence[Cell]) -> tuple[list[float | None], list[float | None]]:
    return [cell.lo for cell in cells], [cell.hi for cell in cells]


def _bars(axes: Axes, sweep: Sweep, line: Line, places: Sequence[float], index: int, count: int) -> None:
    """Bars from 0, or marks where the axis has no 0."""
    colour, marker = _look(index)
    width = _GROUP / count
    known = [
        (p + (index + 0.5) * width - _GROUP / 2, cell) for p, cell in zip(places, line.cells, strict=True) if cell.n
    ]
    x = [at for at, _ in known]
    middle, low, high = ([(value or 0.0) / sweep.unit.size for value in of] for of in (
        [cell.y for _, cell in known], *_ends([cell for _, cell in known])))  # fmt: skip
    if sweep.log:
        axes.plot(x, middle, marker, color=colour, markersize=6, label=line.name)
    else:
        axes.bar(x, middle, width * 0.92, color=colour, label=line.name, alpha=0.85)
    if any(cell.n > 1 for _, cell in known):
        axes.vlines(x, low, high, color="#1b1f24" if not sweep.log else colour, linewidth=1.2)


def _boxes(axes: Axes, sweep: Sweep, line: Line, places: Sequence[float], index: int, count: int) -> None:
    colour, _ = _look(index)
    width = _GROUP / count
    known = [
        (p + (index + 0.5) * width - _GROUP / 2, cell) for p, cell in zip(places, line.cells, strict=True) if cell.n
    ]
    size = sweep.unit.size
    stats: list[dict[str, Any]] = []
    for _, cell in known:
        low, high = cell.quartiles or (0.0, 0.0)
        ends = {"whislo": (cell.lo or 0.0) / size, "whishi": (cell.hi or 0.0) / size}
        stats.append({"med": (cell.y or 0.0) / size, "q1": low / size, "q3": high / size, **ends})
    if not stats:
        return
    line_look = {"color": colour, "linewidth": 1.2}
    axes.bxp(
        stats, positions=[at for at, _ in known], widths=width * 0.8, showfliers=False, patch_artist=True,
        manage_ticks=False, boxprops={"facecolor": colour + "40", "edgecolor": colour}, whiskerprops=line_look,
        capprops=line_look, medianprops={"color": colour, "linewidth": 2},
    )  # fmt: skip
    axes.plot([], [], "s", color=colour, label=line.name)


_DRAWN = {"metric": _line, "box": _boxes}


def _distributions(axes: Axes, sweep: Sweep, panel: Panel) -> None:
    if sweep.log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    for index, line in enumerate(panel.lines):
        colour, marker = _look(index)
        values = [value / sweep.unit.size for cell in line.cells for value in cell.values]
        if not values:
            continue
        share = np.arange(1, len(values) + 1) / len(values)
        mark: dict[str, Any] = {"marker": marker, "markersize": 4} if len(values) <= 30 else {}
        axes.step(
            [values[0], *values], [0.0, *share], where="post", color=colour, linewidth=1.4, label=line.name, **mark
        )
    axes.set_ylim(0, 1.02)


def _limits(axes: Axes, sweep: Sweep) -> None:
    """The same in all panels; from 0, unless the axis is logarithmic or a value is negative."""
    values = [value / sweep.unit.size for value in sweep.values]
    if sweep.log:
        axes.set_yscale("log")
        axes.set_ylim(min(values) / 1.2, max(values) * 1.2)
    elif values and min(values) >= 0:
        axes.set_ylim(0, (max(values) or 1.0) * (_ABOVE_BARS if sweep.bars and sweep.by.key else _MARGIN))
