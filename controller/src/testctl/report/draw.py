# SPDX-License-Identifier: Apache-2.0
"""Draws one panel of a figure with matplotlib: pure functions of Axes and series, no global state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from testctl.charts.style import ACK, DATA, FATE_COLOURS, LANES, RETRANS, STALL
from testctl.core.units import Unit, byte_unit, rate_unit, show_time
from testctl.curves import Line, seq
from testctl.curves.core.figure import rate_bins
from testctl.curves.core.thin import envelope
from testctl.report.stalls import Stall

MAX = 6000
"""Points of one line: more than a panel has pixels, with every extreme."""

MANY = 100
"""Marks of fates beyond this number are drawn smaller."""

LABEL_SHARE = 20
"""A stall shorter than this part of the axis has no label, unless it is the longest: they would cover each other."""

SOFT = "#5b6470"

Limits = tuple[float, float]

_NOTHING = Line("", np.empty(0, np.int64), np.empty(0, np.int64))
_SWITCHED = {seq.CUT: "v", seq.MARKED: "d"}


def new_figure(width: float, height: float) -> Figure:
    """A figure of that many inches, for Agg only."""
    engine = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
    figure = Figure(figsize=(width, height), dpi=110, layout=engine)
    return figure


def tidy(axes: Axes, title: str, x: str, y: str) -> None:
    """Title, axes with units, and a quiet grid."""
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, color="#e3e6ea", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#8a8f98")
    axes.tick_params(color="#8a8f98", labelsize=9)


def draw_throughput(axes: Axes, lines: Sequence[Line], bin_ns: int, end_ns: int, title: str, span: Limits) -> float:
    """Throughput over time of each flow, of lines of bytes; returns the greatest value in the axis' unit."""
    rates = [rate_bins(line, bin_ns, 0, -(-end_ns // bin_ns)) for line in lines]
    most = max((float(y.max(initial=0)) for y in rates), default=0.0)
    unit = rate_unit(most)
    for index, (line, y) in enumerate(zip(lines, rates, strict=True)):
        start_ns = np.arange(len(y)) * bin_ns
        kept = envelope(start_ns, y, MAX)
        colour = LANES[index % len(LANES)]
        axes.step(start_ns[kept] / 1e9, y[kept] / unit.size, where="post", color=colour, linewidth=1.1, label=line.name)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.03)
    axes.set_xlim(*span)
    tidy(axes, title, "time (s)", f"throughput ({unit.name})")
    note = f"bins of {show_time(bin_ns)}"
    axes.annotate(note, (1, 1.02), xycoords="axes fraction", ha="right", fontsize=8, color=SOFT)
    if len(lines) > 1:
        axes.legend(fontsize=8, frameon=False, ncols=2)
    return most / unit.size


def draw_sequence(
    axes: Axes, lines: Mapping[str, Line], stalls: Sequence[Stall], title: str, span: Limits, words: int = 4
) -> None:
    """Sequence number over time: data, ACKs, retransmissions; stalls shaded, the longest labelled, `words` at most.

    lines, stalls  of one connection; the lines of testctl/curves/seq.py by name
    """
    shown = [stall for stall in stalls if stall.end_ns / 1e9 > span[0] and stall.start_ns / 1e9 < span[1]]
    data = lines.get(seq.DATA, _NOTHING)
    top = int(np.max(data.value[data.time_ns <= span[1] * 1e9], initial=1))
    unit = byte_unit(top)
    for stall in shown:
        axes.axvspan(stall.start_ns / 1e9, stall.end_ns / 1e9, color=STALL, alpha=0.2, linewidth=0)
    drawn: tuple[tuple[str, str, dict[str, Any]], ...] = (
        (seq.DATA, ".", {"color": DATA, "markersize": 2}),
        (seq.ACKS, "", {"color": ACK, "linewidth": 1, "drawstyle": "steps-post"}),
        (seq.RETRANSMISSION, "x", {"color": RETRANS, "markersize": 7, "markeredgewidth": 1.8}),
        *((name, mark, {"color": FATE_COLOURS[name], "mfc": "none"}) for name, mark in _SWITCHED.items()),
    )
    for name, shape, look in drawn:
        line = lines.get(name, _NOTHING)
        kept = envelope(line.time_ns, line.value, MAX)
        if name in _SWITCHED:
            look = {**look, "markersize": 6 if len(line) <= MANY else 3}
        label = f"{name} ({len(line)})" if name in _SWITCHED else name
        if len(line) or name == seq.DATA:
            axes.plot(line.time_ns[kept] / 1e9, line.value[kept] / unit.size, shape or "-", label=label, **look)
    longest = sorted(shown, key=lambda stall: -stall.length_ns)[:words]
    for index, stall in enumerate(longest):
        if index == 0 or stall.length_ns >= (span[1] - span[0]) * 1e9 / LABEL_SHARE:
            _arrow(axes, data, stall, unit, top / unit.size)
    axes.set_ylim(0, top / unit.size * 1.12)
    axes.set_xlim(*span)
    tidy(axes, title, "time (s)", f"sequence number ({unit.name})")
    axes.legend(loc="lower right", fontsize=8, framealpha=0.7, edgecolor="none")


def _arrow(axes: Axes, data: Line, stall: Stall, unit: Unit, top: float) -> None:
    """A double arrow over a flat stretch, and how long it is."""
    level = int(np.max(data.value[data.time_ns <= stall.start_ns], initial=0)) / unit.size + 0.035 * top
    ends = (stall.start_ns / 1e9, level), (stall.end_ns / 1e9, level)
    axes.annotate("", ends[0], ends[1], arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0})
    axes.annotate(
        show_time(stall.length_ns), ((ends[0][0] + ends[1][0]) / 2, level), (0, 4), textcoords="offset points",
        ha="center", va="bottom", fontsize=8.5,
    )  # fmt: skip
