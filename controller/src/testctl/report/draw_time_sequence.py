# SPDX-License-Identifier: Apache-2.0
"""Draws a time-sequence figure with matplotlib."""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from testctl.report.draw import tidy
from testctl.report.style import DATA, RECOVERY, RETRANS, SACK, UNA, WINDOW, Unit, byte_unit, time_unit
from testctl.report.thin import envelope
from testctl.report.time_sequence import Bars, Line, TimeSequence

MAX = 8000
"""Bars of one kind; of more an envelope is drawn."""

MIN_PX = 2
"""Height of a bar at least: a segment of megabytes would be less than a pixel."""

_ROOM = 0.06


def draw_time_sequence(axes: Axes, shown: TimeSequence, title: str, span_ns: tuple[float, float]) -> None:
    """Data, retransmissions, SACK blocks, snd.una, the windows, drops; recoveries shaded."""
    parts = [bars.within(*span_ns) for bars in (shown.data, shown.again, shown.sacks)]
    una, edge, allowed, drops = (line.within(*span_ns) for line in (shown.una, shown.edge, shown.allowed, shown.drops))
    low, high = limits([*parts[:2]], una)
    room = _ROOM * max(high - low, 1)
    time, size = time_unit(span_ns[1] - span_ns[0]), byte_unit(high)
    legend: list[Line2D | Patch] = []
    legend += _shade(axes, shown, span_ns, time)
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
        if len(bars.time_ns):
            _bars(axes, bars, time, size, colour, wide, (high - low + 2 * room) * MIN_PX)
            legend.append(Line2D([], [], color=colour, linewidth=2.5, label=label))
    steps: tuple[tuple[Line, str, str, Literal["-", "--", ":"]], ...] = (
        (una, UNA, "snd.una", "-"),
        (edge, WINDOW, "window", "--"),
        (allowed, UNA, "snd.nxt + cwnd - pipe", ":"),
    )
    for line, colour, label, dashes in steps:
        if len(line.time_ns) and int(line.level.min()) <= high + room:
            x = np.append(line.time_ns, span_ns[1]) / time.size
            axes.step(
                x, np.append(line.level, line.level[-1]) / size.size, dashes, where="post", color=colour, linewidth=1.1
            )
            legend.append(Line2D([], [], color=colour, linestyle=dashes, label=label))
    if len(drops.time_ns):
        mark = {"marker": "x", "linestyle": "none", "color": "black", "markersize": 6, "markeredgewidth": 1.4}
        axes.plot(drops.time_ns / time.size, drops.level / size.size, **mark, zorder=5)  # type: ignore[arg-type]
        legend.append(Line2D([], [], label=shown.drops_say, **mark))  # type: ignore[arg-type]
    axes.set_ylim((low - room) / size.size, (high + room) / size.size)
    axes.set_xlim(span_ns[0] / time.size, span_ns[1] / time.size)
    tidy(axes, title, f"time ({time.name})", f"sequence number ({size.name})")
    axes.legend(handles=legend, loc="upper left", fontsize=8, framealpha=0.8, edgecolor="none")


def limits(sent: list[Bars], una: Line) -> tuple[int, int]:
    """The least and the greatest sequence number to show: of data and snd.una, not of the window."""
    low = [int(part.low.min()) for part in sent if len(part.low)] + una.level[:1].tolist()
    high = [int(part.high.max()) for part in sent if len(part.high)] + una.level[-1:].tolist()
    return min(low, default=0), max(high, default=1)


def _bars(axes: Axes, bars: Bars, time: Unit, size: Unit, colour: str, width: float, shown: float) -> None:
    """shown: bytes of the axis times MIN_PX; a bar is never shorter than MIN_PX."""
    kept = envelope(bars.time_ns, bars.high, MAX)
    low, high = bars.low[kept], bars.high[kept]
    more = np.maximum(shown / axes.get_window_extent().height - (high - low), 0) / 2
    x = bars.time_ns[kept] / time.size
    axes.vlines(x, (low - more) / size.size, (high + more) / size.size, color=colour, linewidth=width)


def _shade(axes: Axes, shown: TimeSequence, span_ns: tuple[float, float], time: Unit) -> list[Line2D | Patch]:
    legend: dict[bool, Line2D | Patch] = {}
    for one in shown.recoveries:
        end_ns = one.exit_ns if one.exit_ns >= 0 else span_ns[1]
        if end_ns < span_ns[0] or one.entry_ns > span_ns[1]:
            continue
        colour = RECOVERY[one.fast]
        axes.axvspan(one.entry_ns / time.size, end_ns / time.size, color=colour, alpha=0.16, linewidth=0)
        label = "fast recovery" if one.fast else "after a timeout"
        legend.setdefault(one.fast, Patch(color=colour, alpha=0.3, linewidth=0, label=label))
    return list(legend.values())
