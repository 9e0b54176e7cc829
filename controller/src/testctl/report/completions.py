# SPDX-License-Identifier: Apache-2.0
"""Requests of many points: slowdown by size, or a CDF of completion times; a line for each value of `by`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from testctl.charts import Chart
from testctl.charts.requests import CompletionFigure, CompletionLine, Ended, over_time, requests
from testctl.metrics import Completions, completions
from testctl.plan import FigureSpec
from testctl.plan.request_figures import FCT, SLOWDOWN
from testctl.plan.sweep_figures import FLOW
from testctl.records import Records
from testctl.report.factors import ABSENT
from testctl.report.figure_spec import matching, written_value
from testctl.report.sweep import COUNTED
from testctl.results import RunPoint, layout

MAX_BINS = 20
BIN_LEAST = 50
"""Requests of a bin of sizes, at least: of fewer a 99th percentile is one request."""


def completion_figure(
    spec: FigureSpec, points: Sequence[RunPoint], read: Callable[[RunPoint], Records | None] = RunPoint.records
) -> CompletionFigure:
    """Of the points that meet the figure's `when` and measured something: all flows, or the one that it names.

    read  the records of a point
    """
    groups: dict[str, list[Completions]] = {}
    for point in matching(spec, points):
        has_requests = point.verdict in COUNTED and (point.path / layout.REQUESTS).is_file()
        records = read(point) if has_requests else None
        for flow in records.flows if records is not None else ():
            made = completions(records, flow) if records is not None and spec.flow in ("", flow) else None
            if made is not None and len(made.size):
                by = flow if spec.by == FLOW else written_value(point, spec.by, ABSENT) if spec.by else ""
                groups.setdefault(by, []).append(made)
    make = _slowdown if spec.kind == SLOWDOWN else _distribution
    lines = [make(name or spec.flow or "all requests", of) for name, of in groups.items()]
    return CompletionFigure(spec.title, spec.kind, tuple(line for line in lines if len(line.x)))


def point_charts(records: Records) -> list[Chart]:
    """Of one point: completion times over time, their distribution and slowdown by size, a line for each flow."""
    done = {flow: made for flow in records.flows if (made := completions(records, flow)) is not None and len(made.size)}
    if not done:
        return []
    orders = {flow: np.argsort(made.end_ns, kind="stable") for flow, made in done.items()}
    ended = [
        Ended(flow, made.end_ns[orders[flow]] / 1e9, made.took_ns[orders[flow]] / 1e9, made.size[orders[flow]])
        for flow, made in done.items()
    ]
    shown = [
        CompletionFigure(title, kind, tuple(line for line in lines if len(line.x)), tuple(records.flows))
        for title, kind, lines in (
            ("Completion times", FCT, [_distribution(flow, [made]) for flow, made in done.items()]),
            ("Slowdown by size", SLOWDOWN, [_slowdown(flow, [made]) for flow, made in done.items()]),
        )
    ]
    return [over_time(ended, records.flows), *(requests(figure) for figure in shown if figure.lines)]


def _slowdown(name: str, of: Sequence[Completions]) -> CompletionLine:
    """Bins of about as many requests each, in the order of their sizes; a size is never in two."""
    size = np.concatenate([one.size for one in of])
    slowdown = np.concatenate([one.slowdown for one in of])
    known = np.isfinite(slowdown)
    size, slowdown = size[known], slowdown[known]
    order = np.argsort(size, kind="stable")
    size, slowdown = size[order], slowdown[order]
    bins = min(MAX_BINS, max(len(size) // BIN_LEAST, 1))
    if not len(size):
        return CompletionLine(name, np.empty(0), np.empty(0), np.empty(0), 0)
    cuts = np.unique(np.searchsorted(size, size[np.arange(1, bins) * len(size) // bins]))
    parts = [(s, d) for s, d in zip(np.split(size, cuts), np.split(slowdown, cuts), strict=True) if len(s)]
    return CompletionLine(
        name,
        np.array([np.median(s) for s, _ in parts]),
        np.array([np.median(d) for _, d in parts]),
        np.array([np.quantile(d, 0.99, method="inverted_cdf") for _, d in parts]),
        len(size),
    )


def _distribution(name: str, of: Sequence[Completions]) -> CompletionLine:
    took_s = np.sort(np.concatenate([one.took_ns for one in of])) / 1e9
    share = np.arange(1, len(took_s) + 1) / len(took_s)
    return CompletionLine(name, took_s, share, np.empty(0), len(took_s))
