# SPDX-License-Identifier: Apache-2.0
"""Cells of runs in wall-clock time: points that differ only in their repetition, and their measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testctl.compare.deltas import prefers
from testctl.compare.match import Key, repeat_of
from testctl.noise.aa_test import numbers_of
from testctl.results import Run, RunPoint

MEASURED = ("pass", "fail")
"""Verdicts of points whose numbers count."""

Identity = frozenset[tuple[Key, str]]


@dataclass(frozen=True)
class Cell:
    """A cell of both runs.

    a, b     its points in A and in B, in the order of their repetition
    """

    tuples: tuple[tuple[str, str, Any], ...]
    a: tuple[RunPoint, ...]
    b: tuple[RunPoint, ...]

    @property
    def name(self) -> str:
        """The id of its first point."""
        return (self.a or self.b)[0].id

    def values(self, side: int, metric: str) -> list[float]:
        """Of A (0) or B (1): the numbers of a metric, "flow name", of the points that measured it."""
        measured = [numbers_of(point.metrics) for point in (self.a, self.b)[side] if point.verdict in MEASURED]
        return [numbers[metric] for numbers in measured if metric in numbers]


def cells_of(a: Sequence[Run], b: Sequence[Run]) -> tuple[Cell, ...]:
    """Cells in the order of A's points; the runs of one side are combined."""
    cells: dict[Identity, tuple[list[RunPoint], list[RunPoint]]] = {}
    for side, runs in enumerate((a, b)):
        for point in (point for run in runs for point in run.points):
            cells.setdefault(identity(point), ([], []))[side].append(point)
    return tuple(_cell(*sides) for sides in cells.values())


def identity(point: RunPoint) -> Identity:
    """What a point tests, without its repetition."""
    return frozenset(((entity, parameter), str(value)) for entity, parameter, value in point.tuples)


def _cell(a: Sequence[RunPoint], b: Sequence[RunPoint]) -> Cell:
    return Cell((a or b)[0].tuples, tuple(sorted(a, key=repeat_of)), tuple(sorted(b, key=repeat_of)))


def metrics_of(cell: Cell, chosen: Sequence[str] = ()) -> list[str]:
    """ "flow name" of the metrics to compare: the chosen ones, else all that prefer a direction.

    The fewer there are, the smaller a change may be that is found.
    """
    names: dict[str, None] = {}
    for point in (*cell.a, *cell.b):
        if point.verdict in MEASURED:
            names |= dict.fromkeys(numbers_of(point.metrics))
    metrics = {name: name.rpartition(" ")[2] for name in names}
    return [name for name, m in metrics.items() if (m in chosen if chosen else prefers(m) != "none")]


def counts(points: Sequence[RunPoint]) -> Mapping[str, int]:
    totals: dict[str, int] = {}
    for point in points:
        totals[point.verdict] = totals.get(point.verdict, 0) + 1
    return totals
