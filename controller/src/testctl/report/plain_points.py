# SPDX-License-Identifier: Apache-2.0
"""The points of a run for a file or a pipe: one line each with named values, those that passed by groups; as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import TextIO

from testctl.charts.style import SHOWN_LOOKS
from testctl.core.point import POINT_WIDE
from testctl.core.quantities import numeric
from testctl.report.factors import ABSENT, Factor, factors
from testctl.report.metrics import KEY_METRICS, Column, columns, number_of
from testctl.results import Run, RunPoint

MOST_GROUPS = 20
"""Lines for the points that passed."""
_MOST_LISTED = 8
"""Parameters of a group whose values are listed where it has several."""


def plain_lines(run: Run, listed: Sequence[RunPoint], keys: Sequence[tuple[str, str]] = KEY_METRICS) -> list[str]:
    """A line for each point that did not pass, then one for each group of those that passed.

    A group has the same value of the first swept parameter that has few.
    """
    varying, shown = factors(run.points), columns(run.points, run.summary, keys)
    passed = [point for point in listed if point.verdict == "pass"]
    by = next((factor for factor in varying if len(factor.values) <= MOST_GROUPS), None)
    groups: dict[str, list[RunPoint]] = {}
    for point in passed:
        groups.setdefault(by.of[point.id] if by else "", []).append(point)
    singly = [[point] for point in listed if point.verdict != "pass"]
    return [_line(points, varying, shown) for points in (*singly, *groups.values())]


def _line(points: Sequence[RunPoint], varying: Sequence[Factor], shown: Sequence[Column]) -> str:
    """Points of one verdict: their values of each parameter, and of each metric the least and the greatest."""
    verdict = points[0].verdict
    several = [factor for factor in varying if len({factor.of[point.id] for point in points}) > 1]
    left_out = several if len(several) > _MOST_LISTED else []
    named = " ".join(
        _texts(factor.label, (factor.of[point.id] for point in points), "=", "|")
        for factor in varying
        if factor not in left_out
    ).strip()
    if left_out:
        named += f"{', and ' if named else ''}{len(left_out)} parameters with several values"
    measured = [
        _texts(column.heading, (text for _, text in _ends([column.cell(point) for point in points])), " ", " … ")
        for column in shown
    ]
    what = points[0].id[:8] if len(points) == 1 else f"{len(points)} points"
    parts = [
        f"{SHOWN_LOOKS[verdict].sign} {verdict}",
        what,
        named,
        ", ".join(filter(None, measured)),
    ]
    return "  ".join(filter(None, parts))


def _texts(name: str, texts: Iterable[str], sign: str, between: str) -> str:
    there = [text for text in dict.fromkeys(texts) if text not in ("", ABSENT)]
    return f"{name}{sign}{between.join(there)}" if there else ""


def _ends(cells: Sequence[tuple[float | None, str]]) -> list[tuple[float | None, str]]:
    """The cells with the least and the greatest number, or all where one has none."""
    known = sorted((cell for cell in cells if cell[0] is not None), key=lambda cell: cell[0] or 0.0)
    return [known[0], known[-1]] if known else list(cells)


def write_csv(run: Run, file: TextIO) -> None:
    """One line a point: id, verdict, the swept values and the metrics that tables show, as numbers in base units.

    A heading has the unit: `switch.delay_s`, `throughput_bps`.  An expected metric that differs by flow has a column
    for each of them, `flow.metric`.  What is not known is empty.
    """
    heads, rows = ["point", "verdict"], [[point.id, point.verdict] for point in run.points]

    def add(head: str, values: Sequence[object]) -> None:
        heads.append(head)
        for row, value in zip(rows, values, strict=True):
            row.append("" if value is None or value == ABSENT else value)  # type: ignore[arg-type]

    for factor in factors(run.points):
        texts = [factor.of[point.id] for point in run.points]
        numbers = numeric([text for text in texts if text != ABSENT])
        if numbers is None:
            add(factor.key, texts)
        else:
            by = dict(zip((text for text in texts if text != ABSENT), numbers.values, strict=True))
            add(factor.key + numbers.suffix, [by.get(text) for text in texts])
    for column in columns(run.points, run.summary):
        if column.each:
            for flow in dict.fromkeys(flow for point in run.points for flow in point.metrics):
                if any(column.metric in point.metrics.get(flow, {}) for point in run.points):
                    head = column.metric if flow == POINT_WIDE else f"{flow}.{column.metric}"
                    if head not in heads:
                        add(head, [number_of(point, column.metric, flow) for point in run.points])
        else:
            add(column.metric, [column.cell(point)[0] for point in run.points])
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
