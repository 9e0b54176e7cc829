# SPDX-License-Identifier: Apache-2.0
"""Two runs of a deterministic testbed side by side: any difference is real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from testctl.compare.comparability import versions_moved
from testctl.compare.deltas import Direction, Move, decided, moves, verdict_direction
from testctl.compare.match import Pair, match_points
from testctl.compare.packet import FirstDifference, first_difference
from testctl.report.factors import in_common
from testctl.report.metrics import expected_metrics
from testctl.results import Run, RunPoint


@dataclass(frozen=True)
class Difference:
    """A point of both runs that differs.

    point, other  its id in A and in B
    asked         (entity, parameter, in A, in B) of each tuple that differs
    moves         every metric whose value changed
    direction     what its verdict says, or the metrics that decide (deltas.decided)
    first         the first packet that differs; None if the digests are the same
    """

    point: str
    other: str
    tuples: tuple[tuple[str, str, Any], ...]
    asked: tuple[tuple[str, str, str, str], ...]
    verdicts: tuple[str, str]
    reasons: tuple[str, str]
    digests: tuple[str, str]
    moves: tuple[Move, ...]
    direction: Direction
    first: FirstDifference | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.point,
            "id_b": self.other,
            "tuples": [list(t) for t in self.tuples],
            "asked": [list(pair) for pair in self.asked],
            "verdicts": list(self.verdicts),
            "reasons": list(self.reasons),
            "digests": list(self.digests),
            "direction": self.direction,
            "metrics": [move.to_json() for move in self.moves],
            "first": self.first.to_json() if self.first else None,
        }


@dataclass(frozen=True)
class Comparison:
    """The differences between run A and run B.

    same        number of points with the same digest, verdict and metrics
    versions    (name, in A, in B) of the versions that differ
    expected    metrics that the plans expect something of
    shared      what the points that differ set and the others do not, in words
    metrics_a   metrics that only A's points have (metrics_b: B's); they do not make a point differ
    """

    runs: tuple[str, str]
    same: int
    differences: tuple[Difference, ...]
    only_a: tuple[RunPoint, ...]
    only_b: tuple[RunPoint, ...]
    versions: tuple[tuple[str, str, str], ...] = ()
    metrics_a: tuple[str, ...] = ()
    metrics_b: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    shared: str = ""

    @property
    def differs(self) -> bool:
        return bool(self.differences or self.only_a or self.only_b)

    @property
    def worse(self) -> bool:
        """Whether a point is worse, or missing in B."""
        return bool(self.only_a) or any(difference.direction == "worse" for difference in self.differences)

    def to_json(self) -> dict[str, Any]:
        return {
            "how": "exact",
            "runs": list(self.runs),
            "differs": self.differs,
            "worse": self.worse,
            "same": self.same,
            "shared": self.shared,
            "only_a": [point.id for point in self.only_a],
            "only_b": [point.id for point in self.only_b],
            "versions": [list(version) for version in self.versions],
            "metrics_only_a": list(self.metrics_a),
            "metrics_only_b": list(self.metrics_b),
            "differences": [difference.to_json() for difference in self.differences],
        }


def compare_runs(a: Run, b: Run, least: float = 0.0) -> Comparison:
    """Points are matched by id, else by tuples; they agree when digest, verdict and metrics do.

    least: metrics that changed by at most this share are left out; points may still differ by their digests.
    """
    matched, expected = match_points(a, b), expected_of(a, b)
    compared = [difference(pair, least, expected) for pair in matched.pairs]
    differences = tuple(difference for difference in compared if difference is not None)
    ours, theirs = _metrics(matched.pairs, 0), _metrics(matched.pairs, 1)
    return Comparison(
        (a.name, b.name),
        len(compared) - len(differences),
        differences,
        matched.only_a,
        matched.only_b,
        versions_moved(a, b),
        tuple(sorted(ours - theirs)),
        tuple(sorted(theirs - ours)),
        expected,
        in_common([pair.a for pair in matched.pairs], {each.point for each in differences}),
    )


def expected_of(*runs: Run) -> tuple[str, ...]:
    """The metrics that the plans of these runs expect something of."""
    return tuple(dict.fromkeys(metric for run in runs for metric in expected_metrics(run.summary)))


def difference(pair: Pair, least: float, expected: Sequence[str]) -> Difference | None:
    """The difference of the two points; None if they are equal."""
    a, b = pair.a, pair.b
    moved = moves(a.metrics, b.metrics, least)
    if (a.digest, a.verdict) == (b.digest, b.verdict) and not moved:
        return None
    first = first_difference(a.path, b.path) if a.digest != b.digest else None
    return Difference(
        a.id,
        b.id,
        a.tuples,
        pair.asked,
        (a.verdict, b.verdict),
        (a.reason, b.reason),
        (a.digest, b.digest),
        moved,
        decided(verdict_direction(a.verdict, b.verdict), moved, expected),
        first,
    )


def _metrics(pairs: tuple[Pair, ...], side: int) -> set[str]:
    return {name for pair in pairs for values in (pair.a, pair.b)[side].metrics.values() for name in values}
