# SPDX-License-Identifier: Apache-2.0
"""Requests: slowdown by size, and distributions of completion times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from testctl_agent.spec.units import Bytes

from testctl.charts.chart import Chart
from testctl.charts.parts import as_columns, colour, logarithmic, shape, tooltip
from testctl.charts.style import LANES
from testctl.core.units import show_time
from testctl.plan.request_figures import SLOWDOWN
from testctl.records.schema import Array

SHOWN = 3000
"""Requests over time that are drawn; of each flow SLOWEST of the slowest, or half of its part."""
SLOWEST = 200

MOST = 500
"""Points of one distribution that are drawn: about as many as a panel has pixels."""


@dataclass(frozen=True)
class CompletionLine:
    """One value of `by`.

    x, y   slowdown: sizes (the median of a bin, bytes) and medians; fct: times in s, ascending, and shares
    tail   slowdown: the 99th percentile of each bin
    count  of requests
    """

    name: str
    x: Array
    y: Array
    tail: Array
    count: int


@dataclass(frozen=True)
class CompletionFigure:
    """flows: the flows of the plan, where each line is a flow; their order gives the colours."""

    title: str
    kind: str
    lines: tuple[CompletionLine, ...]
    flows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """The requests of a flow that ended: when (s), after how long (s), and bytes; in the order of their ends."""

    name: str
    end_s: Array
    took_s: Array
    size: Array


def over_time(flows: Sequence[Ended], order: Sequence[str]) -> Chart:
    """The completion time of each request when it ended; of many a part, and all of the slowest.

    order  the plan's flows, which gives the colours
    """
    names = [flow.name for flow in flows]
    kept = {flow.name: _kept(flow.took_s, SHOWN // max(len(flows), 1)) for flow in flows}
    columns = as_columns(("s", "ms", "flow", "at", "took", "bytes"), _ends(flows, kept))
    x = {"field": "s", "type": "quantitative", "title": "end of the request (s)", "axis": {"format": "~g"},
         "scale": {"nice": False, "zero": False}}  # fmt: skip
    hover = tooltip({"flow": "flow", "at": "ended at", "took": "took", "bytes": "size"})
    encoding = {"x": x, "y": logarithmic("ms", "completion time (ms)", columns["ms"]), "tooltip": hover,
                "color": _colour("flow", names, order, "flow" if len(names) > 1 else "")}  # fmt: skip
    spec = {"data": {"name": "ends"}, "mark": {"type": "point", "filled": True, "size": 14, "opacity": 0.55},
            "encoding": encoding}  # fmt: skip
    count, drawn = sum(len(flow.took_s) for flow in flows), len(columns["s"])
    note = f"{drawn} of {count} requests, with the slowest" if drawn < count else f"{count} requests"
    title = "Completion times over time"
    return Chart(spec, {"ends": columns}, title, note, f"{title}: {note}")


def _colour(field: str, names: Sequence[str], order: Sequence[str], title: str) -> dict[str, Any]:
    """Of flows the colour that each has in all figures of a run."""
    coloured = colour(field, names, title)
    if order:
        coloured["scale"]["range"] = [LANES[list(order).index(name) % len(LANES)] for name in names]
    return coloured


def _kept(took_s: Array, most: int) -> Array:
    """The rows that are drawn: evenly spread, and the slowest."""
    if len(took_s) <= most:
        return np.arange(len(took_s))
    slowest = min(SLOWEST, most // 2)
    spread = np.linspace(0, len(took_s) - 1, most - slowest).astype(int)
    return np.union1d(spread, np.argsort(took_s, kind="stable")[len(took_s) - slowest :])


def _ends(flows: Sequence[Ended], kept: Mapping[str, Array]) -> Iterator[list[Any]]:
    for flow in flows:
        rows = kept[flow.name]
        for end_s, took_s, size in zip(flow.end_s[rows], flow.took_s[rows], flow.size[rows], strict=True):
            yield [float(end_s), float(took_s * 1e3), flow.name, show_time(float(end_s * 1e9)),
                   show_time(float(took_s * 1e9)), str(Bytes(int(size)))]  # fmt: skip


def requests(shown: CompletionFigure) -> Chart:
    return _slowdown(shown) if shown.kind == SLOWDOWN else _distribution(shown)


def _slowdown(shown: CompletionFigure) -> Chart:
    """The median and the 99th percentile of each line."""
    names, of = [line.name for line in shown.lines], ("p50", "p99")
    columns = as_columns(("size", "slowdown", "line", "of", "bytes", "said", "count"), _sizes(shown))
    dash = {"field": "of", "type": "nominal", "scale": {"domain": list(of), "range": [[1, 0], [6, 3]]},
            "legend": {"title": "of the requests"}}  # fmt: skip
    size = "format(datum.value, '.1~s') + 'B'"  # kB, MB
    y = logarithmic("slowdown", "slowdown", [1.0, *columns["slowdown"]])
    x = logarithmic("size", "size of the request", columns["size"], size)
    encoding = {"x": x, "y": y, "color": _colour("line", names, shown.flows, "requests")}
    tips = tooltip(
        {
            "line": "requests",
            "bytes": "size",
            "of": "of the requests",
            "said": "slowdown",
            "count": "requests of the line",
        }
    )
    layers = [
        {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": {**encoding, "strokeDash": dash}},
        {"mark": {"type": "point", "filled": True, "size": 36, "opacity": 1},
         "encoding": {**encoding, "shape": shape("line", names, "requests"), "tooltip": tips}},
    ]  # fmt: skip
    note = "time taken / time on an empty path"
    return Chart(
        {"data": {"name": "sizes"}, "layer": layers}, {"sizes": columns}, shown.title, note, f"{shown.title}: {note}"
    )


def _sizes(shown: CompletionFigure) -> Iterator[list[Any]]:
    for line in shown.lines:
        for of, values in (("p50", line.y), ("p99", line.tail)):
            for size, value in zip(line.x.tolist(), values.tolist(), strict=True):
                yield [size, value, line.name, of, str(Bytes(round(size))), f"{value:.3g}", line.count]


def _distribution(shown: CompletionFigure) -> Chart:
    names = [line.name for line in shown.lines]
    y = {"field": "share", "type": "quantitative", "title": "share of requests", "scale": {"domain": [0, 1]},
         "axis": {"format": ".0%"}}  # fmt: skip
    columns = as_columns(("ms", "share", "line", "at most", "part", "count"), _shares(shown))
    x = logarithmic("ms", "completion time (ms)", columns["ms"])
    encoding = {"x": x, "y": y, "color": _colour("line", names, shown.flows, "requests")}
    tips = tooltip({"line": "requests", "at most": "within", "part": "share", "count": "requests of the line"})
    layers = [
        {"mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5}, "encoding": encoding},
        {
            "mark": {"type": "point", "filled": True, "opacity": 0, "size": 40},
            "encoding": {**encoding, "tooltip": tips},
        },
    ]
    note = "; ".join(f"{line.name}: {line.count} requests" for line in shown.lines)
    return Chart(
        {"data": {"name": "times"}, "layer": layers}, {"times": columns}, shown.title, note, f"{shown.title}. {note}"
    )


def _shares(shown: CompletionFigure) -> Iterator[list[Any]]:
    for line in shown.lines:
        kept = np.unique(np.linspace(0, len(line.x) - 1, min(len(line.x), MOST)).astype(int))
        for took_s, share in zip(line.x[kept].tolist(), line.y[kept].tolist(), strict=True):
            yield [took_s * 1e3, share, line.name, show_time(took_s * 1e9), f"{100 * share:.4g} %", line.count]
