# SPDX-License-Identifier: Apache-2.0
"""Draws a time-sequence figure with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from testctl.charts.style import DATA, RECOVERY, RETRANS, SACK, UNA, WINDOW
from testctl.core.units import Unit, byte_unit, time_unit
from testctl.curves import Line, seq
from testctl.curves.core.thin import envelope
from testctl.metrics.recovery.measure import Recovery
from testctl.records.schema import Array
from testctl.report.draw import tidy

MAX = 8000
"""Bars of one kind; of more an envelope is drawn."""

MIN_PX = 2
"""Height of a bar at least: a segment of megabytes would be less than a pixel."""

_MARGIN = 0.06


def draw_time_sequence(
    axes: Axes,
    lines: Mapping[str, Line],
    recoveries: Sequence[Recovery],
    title: str,
    from_to_ns: tuple[int, int | None],
) -> None:
    """Data, retransmissions, SACK blocks, ACKs, the windows, drops; recoveries shaded.

    lines       of testctl/curves/seq.py by name
    from_to_ns  what is shown; 0 and None or 0 are the first and the last packet
    """
    first, last = _span(lines)
    span_ns = from_to_ns[0] or first, from_to_ns[1] or last
    parts = [_within(lines.get(name), span_ns) for name in (seq.DATA, seq.RETRANSMISSION, seq.SACKED)]
    una, edge, allowed = (_within(lines.get(name), span_ns, 1) for name in (seq.ACKS, seq.EDGE, seq.ALLOWED))
    una = Line(una.name, una.time_ns, np.maximum.accumulate(una.value))
    low, high = limits(parts[:2], una)
    margin = _MARGIN * max(high - low, 1)
    time, size = time_unit(span_ns[1] - span_ns[0]), byte_unit(high)
    legend: list[Line2D | Patch] = []
    legend += _shade(axes, recoveries, span_ns, time)
    # Narrow where there are many: a bar should not be wider than what is between two packets.
    crowd = max(len(part.time_ns) for part in parts)
    width = 1.8 if crowd < 300 else 1.0 if crowd < 2000 else 0.6
    for bars, colour, label, wide in zip(
        (parts[2], parts[0], parts[1]),
        (SACK, DATA, RETRANS),
        ("SACK block", "data", "retransmission"),
        (0.6 * width, width, 1.6 * width),
        strict=True,
    ):
        if len(bars):
            _bars(axes, bars, time, size, colour, wide, (high - low + 2 * margin) * MIN_PX)
            legend.append(Line2D([], [], color=colour, linewidth=2.5, label=label))
    steps: tuple[tuple[Line, str, str, Literal["-", "--", ":"]], ...] = (
        (una, UNA, "snd.una", "-"),
        (edge, WINDOW, seq.EDGE, "--"),
        (allowed, UNA, seq.ALLOWED, ":"),
    )
    for line, colour, label, dashes in steps:
        if len(line) and int(line.value.min()) <= high + margin:
            x = np.append(line.time_ns, span_ns[1]) / time.size
            axes.step(
                x, np.append(line.value, line.value[-1]) / size.size, dashes, where="post", color=colour, linewidth=1.1
            )
            legend.append(Line2D([], [], color=colour, linestyle=dashes, label=label))
    mark = {"marker": "x", "linestyle": "none", "color": "black", "markersize": 6, "markeredgewidth": 1.4}
    for name in (seq.CUT, seq.LOST):
        drops = _within(lines.get(name), span_ns)
        if len(drops):
            axes.plot(drops.time_ns / time.size, drops.value / size.size, **mark, zorder=5)  # type: ignore[arg-type]
            legend.append(Line2D([], [], label=name, **mark))  # type: ignore[arg-type]
    axes.set_ylim((low - margin) / size.size, (high + margin) / size.size)
    axes.set_xlim(span_ns[0] / time.size, span_ns[1] / time.size)
    tidy(axes, title, f"time ({time.name})", f"sequence number ({size.name})")
    axes.legend(handles=legend, loc="upper left", fontsize=8, framealpha=0.8, edgecolor="none")


def limits(sent: Sequence[Line], una: Line) -> tuple[int, int]:
    """The least and the greatest sequence number to show: of data and ACKs, not of the window."""
    low = [int(_low(part).min()) for part in sent if len(part)] + una.value[:1].tolist()
    high = [int(part.value.max()) for part in sent if len(part)] + una.value[-1:].tolist()
    return min(low, default=0), max(high, default=1)


def _low(bars: Line) -> Array:
    """The first bytes of packets or blocks."""
    return np.asarray(bars.value - bars.detail["length"])


def _within(line: Line | None, span_ns: tuple[float, float], before: int = 0) -> Line:
    """The part of a line in a time, with so many samples before it: a step begins at the edge."""
    if line is None:
        return Line("", np.empty(0, np.int64), np.empty(0, np.int64))
    first, last = np.searchsorted(line.time_ns, span_ns)
    part = slice(max(int(first) - before, 0), int(last))
    detail = {name: values[part] for name, values in line.detail.items()}
    return Line(line.name, line.time_ns[part], line.value[part], detail)


def _span(lines: Mapping[str, Line]) -> tuple[int, int]:
    """From the first packet to the last, with a margin."""
    found = [lines[name].time_ns for name in (seq.DATA, seq.RETRANSMISSION, seq.ACKS) if name in lines]
    first, last = min((int(t[0]) for t in found), default=0), max((int(t[-1]) for t in found), default=1)
    margin = max((last - first) // 50, 1)
    return first - margin, last + margin


def _bars(axes: Axes, bars: Line, time: Unit, size: Unit, colour: str, width: float, shown: float) -> None:
    """shown: bytes of the axis times MIN_PX; a bar is never shorter than MIN_PX."""
    kept = envelope(bars.time_ns, bars.value, MAX)
    low, high = _low(bars)[kept], bars.value[kept]
    more = np.maximum(shown / axes.get_window_extent().height - (high - low), 0) / 2
    x = bars.time_ns[kept] / time.size
    axes.vlines(x, (low - more) / size.size, (high + more) / size.size, color=colour, linewidth=width)


def _shade(
    axes: Axes, recoveries: Sequence[Recovery], span_ns: tuple[float, float], time: Unit
) -> list[Line2D | Patch]:
    legend: dict[bool, Line2D | Patch] = {}
    for one in recoveries:
        end_ns = one.exit_ns if one.exit_ns >= 0 else span_ns[1]
        if end_ns < span_ns[0] or one.entry_ns > span_ns[1]:
            continue
        colour = RECOVERY[one.fast]
        axes.axvspan(one.entry_ns / time.size, end_ns / time.size, color=colour, alpha=0.16, linewidth=0)
        label = "fast recovery" if one.fast else "after a timeout"
        legend.setdefault(one.fast, Patch(color=colour, alpha=0.3, linewidth=0, label=label))
    return list(legend.values())
