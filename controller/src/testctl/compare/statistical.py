# SPDX-License-Identifier: Apache-2.0
"""Two runs in wall-clock time compared by statistics over their repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from testctl.compare.comparability import doubts, versions_moved
from testctl.compare.deltas import Direction, decided, direction, verdict_direction
from testctl.compare.exact import expected_of
from testctl.compare.samples import Cell, cells_of, counts, metrics_of
from testctl.compare.stats.two_samples import LEVEL, Tested, adjusted, compare_samples, least_samples
from testctl.core.point import POINT_WIDE
from testctl.results import Run

Said = Literal["changed", "no evidence", "too few samples"]
SAID: tuple[Said, ...] = ("changed", "no evidence", "too few samples")
_ORDER = ("pass", "skip", "fail", "invalid", "broken")


@dataclass(frozen=True)
class Judgement:
    """The verdict on one metric of one cell.

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
        """The shift over A's median."""
        return self._over_median(self.tested.shift)

    @property
    def relative_interval(self) -> tuple[float, float] | None:
        ends = [self._over_median(end) for end in self.tested.interval or ()]
        return (ends[0], ends[1]) if len(ends) == 2 and ends[0] is not None and ends[1] is not None else None

    def _over_median(self, value: float) -> float | None:
        middle = abs(self.tested.medians[0])
        return value / middle if middle else None

    def to_json(self) -> dict[str, Any]:
        tested = self.tested
        return {
            "flow": self.flow, "metric": self.metric, "said": self.said, "direction": self.direction,
            "counts": list(tested.counts), "means": list(tested.means), "medians": list(tested.medians),
            "shift": tested.shift, "shift_95": list(tested.interval) if tested.interval else None,
            "relative": self.relative, "p": tested.p, "p_adjusted": self.p_adjusted, "cliffs_delta": tested.effect,
            "modes": dict(zip(("lower", "upper", "upper_share_a", "upper_share_b"), tested.modes, strict=True))
            if tested.modes else None,
        }  # fmt: skip


@dataclass(frozen=True)
class JudgedCell:
    """A cell: its metrics, its verdicts in A and in B ({verdict: count}), the metrics that are expected or chosen."""

    cell: Cell
    judgements: tuple[Judgement, ...]
    verdicts: tuple[Mapping[str, int], Mapping[str, int]]
    expected: Sequence[str] = ()

    @property
    def verdict_direction(self) -> Direction:
        """By the worst verdict of either side; a side without points is worse, or new."""
        if not (self.cell.a and self.cell.b):
            return "worse" if self.cell.a else "other"
        a, b = (max(side, key=_ORDER.index) for side in self.verdicts)
        return verdict_direction(a, b)

    @property
    def changed(self) -> tuple[Judgement, ...]:
        return tuple(judgement for judgement in self.judgements if judgement.said == "changed")

    @property
    def direction(self) -> Direction:
        return decided(self.verdict_direction, self.changed, self.expected)

    @property
    def differs(self) -> bool:
        return bool(self.changed) or self.verdict_direction != "other" or not (self.cell.a and self.cell.b)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.cell.name,
            "tuples": [list(tuple_) for tuple_ in self.cell.tuples],
            "direction": self.direction,
            "verdicts": [dict(counts) for counts in self.verdicts],
            "metrics": [judgement.to_json() for judgement in self.judgements],
        }


@dataclass(frozen=True)
class Statistical:
    """What distinguishes runs A from runs B.

    comparisons  how many p values were corrected together: of all metrics that are not the same everywhere
    needed       samples of each side with which a change of one of them can be found
    doubts       what else may distinguish the runs, in words
    expected     metrics that the plans expect something of
    """

    runs: tuple[str, str]
    cells: tuple[JudgedCell, ...]
    comparisons: int
    needed: int
    versions: tuple[tuple[str, str, str], ...] = ()
    doubts: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        return any(cell.differs for cell in self.cells)

    @property
    def worse(self) -> bool:
        return any(cell.direction == "worse" for cell in self.cells)

    def count(self, conclusion: Said) -> int:
        return sum(judgement.said == conclusion for cell in self.cells for judgement in cell.judgements)

    def to_json(self) -> dict[str, Any]:
        return {
            "how": "statistics",
            "runs": list(self.runs),
            "differs": self.differs,
            "worse": self.worse,
            "comparisons": self.comparisons,
            "needed_samples": self.needed,
            "versions": [list(version) for version in self.versions],
            "doubts": list(self.doubts),
            "cells": [cell.to_json() for cell in self.cells],
        }


def judge_runs(
    a: Sequence[Run], b: Sequence[Run], metrics: Sequence[str] = (), least: float = 0.0, seed: int = 1
) -> Statistical:
    """Every cell and metric; several runs of a side, made in turns with the other's, are taken together.

    least: a shift by no more than this share of A's median is no change.
    """
    cells = cells_of(a, b)
    given = [
        (cell, name, cell.values(0, name), cell.values(1, name)) for cell in cells for name in metrics_of(cell, metrics)
    ]
    both = [test for test in given if test[2] and test[3]]
    # What is the same in all samples can't be called changed: it must not make the others' p larger.
    varying = sum(len({*x, *y}) > 1 for _, _, x, y in both)
    whole = [(cell, name, compare_samples(x, y, seed, varying), len({*x, *y}) > 1) for cell, name, x, y in both]
    corrected = iter(adjusted([test.p for _, _, test, varies in whole if varies]))
    judgements: dict[str, list[Judgement]] = {}
    for cell, name, test, varies in whole:
        judged = _judged(name, test, next(corrected) if varies else 1.0, max(varying, 1), least)
        judgements.setdefault(cell.name, []).append(judged)
    expected = expected_of(*a, *b)
    all_cells = tuple(
        JudgedCell(cell, tuple(judgements.get(cell.name, ())), (counts(cell.a), counts(cell.b)), (*metrics, *expected))
        for cell in cells
    )
    names = tuple(", ".join(run.name for run in side) for side in (a, b))
    return Statistical(
        (names[0], names[1]), all_cells, varying, least_samples(varying), versions_moved(a[0], b[0]), doubts(a, b),
        expected,
    )  # fmt: skip


def _judged(name: str, test: Tested, p: float, comparisons: int, least: float) -> Judgement:
    flow, _, metric = name.rpartition(" ")
    middle = abs(test.medians[0])
    if p <= LEVEL and (not middle or abs(test.shift) / middle > least):
        return Judgement(flow or POINT_WIDE, metric, "changed", direction(metric, test.effect), test, p)
    possible = test.least_p <= LEVEL / comparisons
    return Judgement(flow or POINT_WIDE, metric, "no evidence" if possible else "too few samples", "other", test, p)
