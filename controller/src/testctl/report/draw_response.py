# SPDX-License-Identifier: Apache-2.0
"""Draws response functions: window against loss rate, both logarithmic."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from testctl.charts.style import LANES
from testctl.report.draw import SOFT, tidy
from testctl.report.response import Response

MARKERS = "os^Dv*PX"
"""One for each colour, and one on when the colours begin again: no two curves look alike."""


def draw_response(axes: Axes, shown: Response) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(shown.reno.rates, shown.reno.windows, "--", color=SOFT, linewidth=1.2, label=shown.reno.name)
    for index, curve in enumerate(shown.curves):
        colour = LANES[index % len(LANES)]
        marker = MARKERS[(index + index // len(LANES)) % len(MARKERS)]
        axes.plot(
            curve.rates, curve.windows, marker=marker, markersize=5, color=colour, linewidth=1.3, alpha=0.9,
            label=curve.name,
        )  # fmt: skip
    tidy(axes, shown.title, "rate of random loss", "window (segments)")
    axes.grid(True, which="minor", color="#f0f2f4", linewidth=0.5)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.legend(fontsize=8, frameon=False, ncols=2 if len(shown.curves) > 4 else 1)
