# SPDX-License-Identifier: Apache-2.0
"""Draws one panel of a figure with matplotlib: pure functions of Axes and series, no global state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from testctl.records.schema import Ints
from testctl.report.series import FlowRate, Lane, Series
from testctl.report.stalls import Stall
from testctl.report.style import (
    ACK,
    DATA,
    FATE_COLOURS,
    LANES,
    RETRANS,
    STALL,
    Unit,
    byte_unit,
    far_apart,
    rate_unit,
    show_time,
    time_unit,
)
from testctl.report.thin import envelope

MAX = 6000
"""Points of one line: more than a panel has pixels, with every extreme."""

MANY = 100
"""Marks of fates beyond this number are drawn smaller."""

ROOM = 20
"""A stall shorter than this part of the axis has no label, unless it is the longest: they would cover each other."""

SOFT = "#5b6470"

Limits = tuple[float, float]


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


def draw_throughput(axes: Axes, rates: Sequence[FlowRate], bin_ns: int, end_ns: int, title: str, span: Limits) -> float:
    """Throughput over time of each flow; returns the greatest value in bit/s."""
    lines = [rate.bins(bin_ns, end_ns) for rate in rates]
    most = max((float(y.max(initial=0)) for y in lines), default=0.0)
    unit = rate_unit(most)
    for index, (rate, y) in enumerate(zip(rates, lines, strict=True)):
        y = y[: -(-end_ns // bin_ns)]
        x = np.arange(len(y)) * (bin_ns / 1e9)
        kept = envelope(x, y, MAX)
        colour = LANES[index % len(LANES)]
        axes.step(x[kept], y[kept] / unit.size, where="post", color=colour, linewidth=1.1, label=rate.flow)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.03)
    axes.set_xlim(*span)
    tidy(axes, title, "time (s)", f"throughput ({unit.name})")
    note = f"bins of {show_time(bin_ns)}"
    axes.annotate(note, (1, 1.02), xycoords="axes fraction", ha="right", fontsize=8, color=SOFT)
    _legend(axes, len(rates))
    return most / unit.size


def draw_sequence(axes: Axes, lane: Lane, stalls: Sequence[Stall], title: str, span: Limits, words: int = 4) -> None:
    """Sequence number over time: data, ACKs, retransmissions; stalls shaded, the longest labelled, `words` at most."""
    shown = [stall for stall in stalls if (stall.flow, stall.conn) == (lane.flow, lane.conn)]
    shown = [stall for stall in shown if stall.end_ns / 1e9 > span[0] and stall.start_ns / 1e9 < span[1]]
    top = int(np.max(lane.data_seq[lane.data_ns <= span[1] * 1e9], initial=1))
    unit = byte_unit(top)
    for stall in shown:
        axes.axvspan(stall.start_ns / 1e9, stall.end_ns / 1e9, color=STALL, alpha=0.2, linewidth=0)
    _points(axes, lane.data_ns, lane.data_seq, unit, DATA, "data")
    kept = envelope(lane.ack_ns, lane.ack, MAX)
    axes.step(lane.ack_ns[kept] / 1e9, lane.ack[kept] / unit.size, where="post", color=ACK, linewidth=1, label="ACK")
    if len(lane.retrans_ns):
        x, y = lane.retrans_ns / 1e9, lane.retrans_seq / unit.size
        axes.plot(x, y, "x", color=RETRANS, markersize=7, markeredgewidth=1.8, label="retransmission")
    for name, (t, level) in lane.fates.items():
        kept = envelope(t, level, MAX)
        shape = {"dropped": "v", "marked CE": "d"}[name]
        size, label = 6 if len(t) <= MANY else 3, f"{name} by a switch ({len(t)})"
        colour = FATE_COLOURS[name]
        axes.plot(t[kept] / 1e9, level[kept] / unit.size, shape, color=colour, markersize=size, mfc="none", label=label)
    longest = sorted(shown, key=lambda stall: -stall.length_ns)[:words]
    for index, stall in enumerate(longest):
        if index == 0 or stall.length_ns >= (span[1] - span[0]) * 1e9 / ROOM:
            _arrow(axes, lane, stall, unit, top / unit.size)
    axes.set_ylim(0, top / unit.size * 1.12)
    axes.set_xlim(*span)
    tidy(axes, title, "time (s)", f"sequence number ({unit.name})")
    axes.legend(loc="lower right", fontsize=8, framealpha=0.7, edgecolor="none")


def _arrow(axes: Axes, lane: Lane, stall: Stall, unit: Unit, top: float) -> None:
    """A double arrow over a flat stretch, and how long it is."""
    level = int(np.max(lane.data_seq[lane.data_ns <= stall.start_ns], initial=0)) / unit.size + 0.035 * top
    ends = (stall.start_ns / 1e9, level), (stall.end_ns / 1e9, level)
    axes.annotate("", ends[0], ends[1], arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0})
    axes.annotate(
        show_time(stall.length_ns), ((ends[0][0] + ends[1][0]) / 2, level), (0, 4), textcoords="offset points",
        ha="center", va="bottom", fontsize=8.5,
    )  # fmt: skip


def draw_cwnd(axes: Axes, lanes: Sequence[Lane], span: Limits) -> None:
    """Congestion window over time of each connection."""
    for index, lane in enumerate(lanes):
        kept = envelope(lane.info_ns, lane.cwnd, MAX)
        colour = LANES[index % len(LANES)]
        axes.step(lane.info_ns[kept] / 1e9, lane.cwnd[kept], where="post", color=colour, linewidth=1, label=lane.name)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.03)
    axes.set_xlim(*span)
    tidy(axes, "Congestion window", "time (s)", "cwnd (segments)")
    _legend(axes, len(lanes))


def draw_rtt(axes: Axes, lanes: Sequence[Lane], span: Limits) -> None:
    """Round-trip time of data packets over time."""
    full = [lane for lane in lanes if len(lane.rtt_ns)]
    unit = time_unit(max((float(lane.rtt_ns.max()) for lane in full), default=1.0))
    for index, lane in enumerate(full):
        _points(axes, lane.rtt_at_ns, lane.rtt_ns, unit, LANES[index % len(LANES)], lane.name)
    if far_apart([lane.rtt_ns for lane in full]):
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, axes.get_ylim()[1] * 1.03)
    axes.set_xlim(*span)
    tidy(axes, "Round-trip time", "time (s)", f"RTT ({unit.name})")
    _legend(axes, len(full))


def draw_queue(axes: Axes, series: Series, span: Limits) -> None:
    """Queue depths over time."""
    unit = byte_unit(max((float(y.max(initial=0)) for _, y in series.queue.values()), default=0.0))
    for index, (name, (t, y)) in enumerate(series.queue.items()):
        kept = envelope(t, y, MAX)
        axes.plot(t[kept] / 1e9, y[kept] / unit.size, color=LANES[index % len(LANES)], linewidth=1, label=name)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.03)
    axes.set_xlim(*span)
    names = list(series.queue)
    tidy(axes, f"Queue, {names[0]}" if len(names) == 1 else "Queue", "time (s)", f"queue ({unit.name})")
    _legend(axes, len(series.queue))


def draw_latency(axes: Axes, rates: Sequence[FlowRate]) -> None:
    """Distribution of one-way latency: share of packets above, on a logarithmic axis that shows the tail."""
    full = [rate for rate in rates if len(rate.latency_ns)]
    unit = time_unit(max((float(np.quantile(rate.latency_ns, 0.99)) for rate in full), default=1.0))
    for index, rate in enumerate(full):
        above = 1 - np.arange(len(rate.latency_ns)) / len(rate.latency_ns)
        kept = envelope(rate.latency_ns, above, MAX)
        colour = LANES[index % len(LANES)]
        axes.step(
            rate.latency_ns[kept] / unit.size, above[kept], where="pre", color=colour, linewidth=1.2, label=rate.flow
        )
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    tidy(axes, "Latency, one way", f"latency ({unit.name})", "share of packets at least so late")
    _legend(axes, len(full))


def _points(axes: Axes, t: Ints, y: Ints, unit: Unit, colour: str, label: str) -> None:
    kept = envelope(t, y, MAX)
    axes.plot(t[kept] / 1e9, y[kept] / unit.size, ".", color=colour, markersize=2, label=label)


def _legend(axes: Axes, lines: int) -> None:
    if lines > 1:
        axes.legend(fontsize=8, frameon=False, ncols=2)
