# SPDX-License-Identifier: Apache-2.0
"""A metric over a swept parameter in the terminal: a row for each value, drawn on one scale."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from testctl.charts.sweep_data import Cell, Panel, Sweep
from testctl.core.units import show_metric
from testctl.plan.sweep_figures import HEATMAP
from testctl.report.terminal import plain_console

MOST, LEAST = 50, 16
"""Characters of the scale."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_EIGHTHS = " ▏▎▍▌▋▊▉"
_HEIGHTS = " ▁▂▃▄▅▆▇█"
_STYLES = ("blue", "red", "green", "magenta", "yellow", "cyan", "white", "bright_black")


def plot(sweep: Sweep, width: int) -> RenderableType:
    """The figure as text of so many columns; what its values are stands below."""
    parts: list[RenderableType] = [Text(sweep.title, style="bold")]
    scale = _scale(sweep, width)
    for panel in sweep.panels:
        if panel.name:
            parts.append(Text(f"{sweep.facet.key} {panel.name}", style="bold"))
        if sweep.kind == HEATMAP and (grid := _grid(sweep, panel, width)) is not None:
            parts.append(grid)
        else:
            parts.append((_distributions if sweep.kind == "cdf" else _rows)(sweep, panel, scale))
    return Group(*parts, Text(sweep.caption, style="dim"))


def print_plots(sweeps: Sequence[Sweep], console: Console) -> None:
    """Print these figures, or why there is none."""
    console = plain_console(console)
    if not sweeps:
        console.print("no figure: no parameter is swept, or no point has a value")
    for index, sweep in enumerate(sweeps):
        console.print(*([""] if index else []), plot(sweep, console.width), sep="\n", markup=False)


@dataclass(frozen=True)
class _Scale:
    """From `low` to `high` in `width` characters."""

    low: float
    high: float
    log: bool
    width: int

    def place(self, value: float) -> int:
        """In eighths of a character."""
        if self.high == self.low:
            return self.width * 8
        way: Callable[[float], float] = math.log if self.log else float
        return round((way(value) - way(self.low)) / (way(self.high) - way(self.low)) * self.width * 8)


def _scale(sweep: Sweep, width: int) -> _Scale:
    values = sweep.values or [0.0]
    low = min(values)
    if sweep.kind != "cdf" and not sweep.log:
        low = min(low, 0.0)
    names = sum(max(map(len, (axis.key, *axis.values))) + 2 for axis in (sweep.x, sweep.by) if axis.key)
    words = 52 if sweep.kind == "cdf" else 40 if sweep.intervals else 12
    return _Scale(low, max(values), sweep.log, max(LEAST, min(MOST, width - names - words)))


def _table(sweep: Sweep, scale: _Scale, *heads: str) -> Table:
    """Columns for the values of x and `by`, the scale, and more words."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for key in (sweep.x.key, sweep.by.key):
        if key:
            table.add_column(key, no_wrap=True)
    ends = show_metric(sweep.metric, scale.low), show_metric(sweep.metric, scale.high)
    table.add_column(ends[0] + ends[1].rjust(scale.width - len(ends[0])), no_wrap=True, min_width=scale.width + 1)
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _rows(sweep: Sweep, panel: Panel, scale: _Scale) -> Table:
    heads = (sweep.middle, "least … greatest", "points") if sweep.intervals else ("",)
    table = _table(sweep, scale, *heads)
    for index, value in enumerate(sweep.x.values):
        first = True
        for number, line in enumerate(panel.lines):
            cell = line.cells[index]
            if not cell.n and not cell.missing:
                continue
            names = [value if first else "", *([line.name] if sweep.by.key else [])]
            drawn = Text(_drawn(sweep, cell, scale), style=_STYLES[number % len(_STYLES)])
            table.add_row(*names, drawn, *_words(sweep, cell))
            first = False
    return table


def _grid(sweep: Sweep, panel: Panel, width: int) -> Table | None:
    """A row for each value of `by`, a column for each of x; None where that is too wide."""
    rows = [[line.name, *(_number(sweep, cell) for cell in line.cells)] for line in panel.lines]
    heads = [f"{sweep.by.key} ↓  {sweep.x.key} →", *sweep.x.values]
    if sum(max(map(len, column)) + 1 for column in zip(heads, *rows, strict=True)) > width:
        return None
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 1, 0, 0))
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _number(sweep: Sweep, cell: Cell) -> str:
    return show_metric(sweep.metric, sweep.value(cell)) if cell.n or cell.missing else ""


def _words(sweep: Sweep, cell: Cell) -> Iterator[str]:
    yield show_metric(sweep.metric, sweep.value(cell))
    if sweep.intervals:
        ends = [show_metric(sweep.metric, value) for value in (cell.lo, cell.hi)]
        yield " … ".join(ends) if cell.n > 1 else ""
        yield str(cell.n)


def _drawn(sweep: Sweep, cell: Cell, scale: _Scale) -> str:
    value = sweep.value(cell)
    if value is None or cell.lo is None or cell.hi is None:
        return ""
    if sweep.kind == "box" or sweep.log:
        low, high = cell.quartiles or (value, value)
        marks = [" "] * (scale.width + 1)
        _fill(marks, scale.place(cell.lo), scale.place(cell.hi), "─")
        if sweep.kind == "box":
            _fill(marks, scale.place(low), scale.place(high), "▒")
        marks[scale.place(value) // 8] = "┃" if sweep.kind == "box" else "●"
        return "".join(marks).rstrip()
    whole, part = divmod(scale.place(value), 8)
    bar = "█" * whole + (_EIGHTHS[part] if part else "")
    return bar + "─" * (scale.place(cell.hi) // 8 + 1 - len(bar)) if cell.hi > value else bar


def _fill(marks: list[str], low: int, high: int, sign: str) -> None:
    for at in range(low // 8, high // 8 + 1):
        marks[at] = sign


def _distributions(sweep: Sweep, panel: Panel, scale: _Scale) -> Table:
    """How many values lie where on the scale, and some quantiles."""
    table = _table(sweep, scale, *(f"{share:.0%}" for share in QUANTILES), "points")
    for number, line in enumerate(panel.lines):
        values = [value for cell in line.cells for value in cell.values]
        counts = Counter(min(scale.place(value) // 8, scale.width - 1) for value in values)
        most = max(counts.values(), default=1)
        strip = "".join(_HEIGHTS[math.ceil(counts[at] / most * 8)] for at in range(scale.width))
        quantiles = np.quantile(values, QUANTILES).tolist() if values else [None] * len(QUANTILES)
        names = [line.name] if sweep.by.key else []
        shown = [show_metric(sweep.metric, value) for value in quantiles]
        table.add_row(*names, Text(strip, style=_STYLES[number % len(_STYLES)]), *shown, str(len(values)))
    return table
