# SPDX-License-Identifier: Apache-2.0
"""Two runs in wall-clock time compared by statistics over their repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from testctl.compare.moves import Direction, direction, relative, verdict_direction
from testctl.compare.opened import versions_moved
from testctl.compare.samples import Cell, cells_of, counts, metrics_of
from testctl.compare.statistics import LEVEL, Tested, adjusted, compare_samples, least_samples
from testctl.results import Run

Said = Literal["changed", "no evidence", "too few samples"]
SAID: tuple[Said, ...] = ("changed", "no evidence", "too few samples")
_ORDER = ("pass", "skip", "fail", "invalid", "broken")


@dataclass(frozen=True)
class Judgement:
    """What is said of one metric of one cell.

    p_adjusted  corrected for the number of comparisons
    direction   of a change, "other" where the metric prefers neither or the sides overlap evenly
    """

    flow: str
    metric: str
    said: Said
    direction: Direction
    tested: Tested
    p_adjusted: float

    @property
    def relative(self) -> float | None:
        return relative(*self.tested.means)

    @property
    def relative_interval(self) -> tuple[float, float] | None:
        """The interval of the difference over A's mean."""
        interval, mean = self.tested.interval, abs(self.tested.means[0])
        return (interval[0] / mean, interval[1] / mean) if interval and mean else None

    def to_json(self) -> dict[str, Any]:
        one = self.tested
        return {
            "flow": self.flow, "metric": self.metric, "said": self.said, "direction": self.direction,
            "counts": list(one.counts), "means": list(one.means), "medians": list(one.medians),
            "relative": self.relative, "difference_95": list(one.interval) if one.interval else None,
            "p": one.p, "p_adjusted": self.p_adjusted, "cliffs_delta": one.effect,
            "modes": dict(zip(("lower", "upper", "upper_share_a", "upper_share_b"), one.modes, strict=True))
            if one.modes else None,
        }  # fmt: skip


@dataclass(frozen=True)
class JudgedCell:
    """A cell: its metrics, and its verdicts in A and in B ({verdict: count})."""

    cell: Cell
    judgements: tuple[Judgement, ...]
    verdicts: tuple[Mapping[str, int], Mapping[str, int]]

    @property
    def verdict_direction(self) -> Direction:
        """By the worst verdict of either side; a side without points is worse, or new."""
        if not (self.cell.a and self.cell.b):
            return "worse" if self.cell.a else "other"
        a, b = (max(side, key=_ORDER.index) for side in self.verdicts)
        return verdict_direction(a, b)

    @property
    def changed(self) -> tuple[Judgement, ...]:
        return tuple(one for one in self.judgements if one.said == "changed")

    @property
    def direction(self) -> Direction:
        said = {self.verdict_direction, *(one.direction for one in self.changed)}
        return "worse" if "worse" in said else "better" if "better" in said else "other"

    @property
    def differs(self) -> bool:
        return bool(self.changed) or self.verdict_direction != "other" or not (self.cell.a and self.cell.b)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.cell.name,
            "tuples": [list(one) for one in self.cell.tuples],
            "direction": self.direction,
            "verdicts": [dict(one) for one in self.verdicts],
            "metrics": [one.to_json() for one in self.judgements],
        }


@dataclass(frozen=True)
class Statistical:
    """What distinguishes runs A from runs B.

    comparisons  how many p values were corrected together
    needed       samples of each side with which a change of one of them can be found
    """

    runs: tuple[str, str]
    cells: tuple[JudgedCell, ...]
    comparisons: int
    needed: int
    versions: tuple[tuple[str, str, str], ...] = ()

    @property
    def differs(self) -> bool:
        return any(cell.differs for cell in self.cells)

    @property
    def worse(self) -> bool:
        return any(cell.direction == "worse" for cell in self.cells)

    def count(self, said: Said) -> int:
        return sum(one.said == said for cell in self.cells for one in cell.judgements)

    def to_json(self) -> dict[str, Any]:
        return {
            "how": "statistics",
            "runs": list(self.runs),
            "differs": self.differs,
            "worse": self.worse,
            "comparisons": self.comparisons,
            "needed_samples": self.needed,
            "versions": [list(one) for one in self.versions],
            "cells": [cell.to_json() for cell in self.cells],
        }


def judge_runs(
    a: Sequence[Run], b: Sequence[Run], metrics: Sequence[str] = (), least: float = 0.0, seed: int = 1
) -> Statistical:
    """Every cell and metric; several runs of a side, made in turns with the other's, are taken together.

    least: a change of the means by no more than this share is none.
    """
    cells = cells_of(a, b)
    given = [
        (cell, name, cell.values(0, name), cell.values(1, name)) for cell in cells for name in metrics_of(cell, metrics)
    ]
    both = [one for one in given if one[2] and one[3]]
    whole = [(cell, name, compare_samples(x, y, seed, len(both))) for cell, name, x, y in both]
    corrected = adjusted([one.p for _, _, one in whole])
    found: dict[str, list[Judgement]] = {}
    for (cell, name, one), p in zip(whole, corrected, strict=True):
        found.setdefault(cell.name, []).append(_judged(name, one, p, len(whole), least))
    judged = tuple(
        JudgedCell(cell, tuple(found.get(cell.name, ())), (counts(cell.a), counts(cell.b))) for cell in cells
    )
    names = tuple(", ".join(run.name for run in side) for side in (a, b))
    return Statistical((names[0], names[1]), judged, len(whole), least_samples(len(whole)), versions_moved(a[0], b[0]))


def _judged(name: str, one: Tested, p: float, comparisons: int, least: float) -> Judgement:
    flow, _, metric = name.rpartition(" ")
    change = one.means[1] - one.means[0]
    moved = relative(*one.means)
    if p <= LEVEL and (moved is None or abs(moved) > least):
        # Of two modes the mean may hide what most values do: the pairs decide.
        way = direction(metric, one.effect if one.modes else change)
        return Judgement(flow or "*", metric, "changed", way, one, p)
    possible = one.least_p <= LEVEL / comparisons
    return Judgement(flow or "*", metric, "no evidence" if possible else "too few samples", "other", one, p)
