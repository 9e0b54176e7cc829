# SPDX-License-Identifier: Apache-2.0
"""Draws slowdown by size, and distributions of completion times."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from testctl_agent.spec.units import Bytes

from testctl.charts.style import LANES
from testctl.plan.request_figures import SLOWDOWN
from testctl.report.completions import CompletionFigure
from testctl.report.draw import MAX, SOFT, tidy
from testctl.report.draw_response import MARKERS


def draw_completions(axes: Axes, shown: CompletionFigure) -> None:
    axes.set_xscale("log")
    if shown.kind == SLOWDOWN:
        _slowdown(axes, shown)
    else:
        _distribution(axes, shown)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.legend(fontsize=8, frameon=False, ncols=2 if len(shown.lines) > 4 else 1)


def _slowdown(axes: Axes, shown: CompletionFigure) -> None:
    axes.set_yscale("log")
    for index, line in enumerate(shown.lines):
        look: dict[str, Any] = {
            "marker": MARKERS[index % len(MARKERS)], "markersize": 4, "color": LANES[index % len(LANES)],
        }  # fmt: skip
        axes.plot(line.x, line.tail, "--", linewidth=1, label=f"{line.name}, p99", **look)
        axes.plot(line.x, line.y, linewidth=1.4, label=f"{line.name}, p50", **look)
    tidy(axes, shown.title, "size of the request", "slowdown")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: str(Bytes(round(value)))))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    bottom = min([1.0, *(float(line.y.min()) for line in shown.lines)])
    axes.set_ylim(bottom=bottom)
    note = "time taken / time on an empty path"
    axes.annotate(note, (1, 1.02), xycoords="axes fraction", ha="right", fontsize=8, color=SOFT)


def _distribution(axes: Axes, shown: CompletionFigure) -> None:
    for index, line in enumerate(shown.lines):
        kept = np.unique(np.linspace(0, len(line.x) - 1, min(len(line.x), MAX)).astype(int))
        axes.step(
            line.x[kept] * 1e3, line.y[kept], where="post", color=LANES[index % len(LANES)], linewidth=1.4,
            label=f"{line.name} ({line.count})",
        )  # fmt: skip
    tidy(axes, shown.title, "completion time (ms)", "share of requests")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0, 1.02)
