# SPDX-License-Identifier: Apache-2.0
"""Finds values of parameters that distinguish failing points from passing ones.

The method is sequential covering, as of rule lists (Clark and Niblett, 1989): the best condition is stated, the points
that meet it are set aside, and the next one is about the others.  A condition is one value or a pair of values of
different parameters.  Conditions are ranked by Ochiai's coefficient, as in fault localisation by spectra (Abreu,
Zoeteweij, van Gemund, 2007): failures / sqrt(all failures * points), the geometric mean of precision and coverage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

MOST = 4
"""Conditions stated at most."""
LEAST = 2
"""Failures that a condition covers at least: one alone shares nothing."""

Values = Mapping[str, str]
"""Parameter -> value."""
Condition = tuple[tuple[str, str], ...]
"""One or two (parameter, value)."""
Rank = tuple[Fraction, int, int, tuple[int, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Shared:
    """Points that meet a condition and no earlier one.

    failed, points   how many of them failed, and how many there are
    of               how many points were not covered before
    """

    condition: Condition
    failed: int
    points: int
    of: int

    @property
    def text(self) -> str:
        """ "all 20 with delay=30ms"."""
        count = f"all {self.points}" if self.failed == self.points else f"{self.failed} of {self.points}"
        return f"{count} with {' and '.join(f'{parameter}={value}' for parameter, value in self.condition)}"


def shared_values(points: Sequence[Values], failed: Sequence[bool]) -> list[Shared]:
    """The conditions that describe the failures, best first; none where all points fail, or less than LEAST.

    A condition is stated only where it describes the failures better than "all points" does.  Of equally good ones the
    shorter is chosen, then the one with more failures, then by the order of parameters and values; so the result does
    not depend on the order of the points.
    """
    left = list(zip(points, failed, strict=True))
    order = {name: index for index, name in enumerate(dict.fromkeys(name for point in points for name in point))}
    shared: list[Shared] = []
    while len(shared) < MOST:
        best = _best(left, order)
        if best is None:
            break
        shared.append(best)
        left = [(point, fails) for point, fails in left if not _meets(point, best.condition)]
    return shared


def in_words(points: Sequence[Values], failed: Sequence[bool]) -> str:
    """Common values of the failures: "all 20 with delay=30ms; of the other 40, 2 of 14 with cc=reno; 1 more"; or ""."""
    values = shared_values(points, failed)
    parts = [v.text if index == 0 else f"of the other {v.of}, {v.text}" for index, v in enumerate(values)]
    more = sum(failed) - sum(value.failed for value in values)
    return "; ".join([*parts, *([f"{more} more"] if values and more else [])])


def _best(left: Sequence[tuple[Values, bool]], order: Mapping[str, int]) -> Shared | None:
    failures = [point for point, fails in left if fails]
    if len(failures) < LEAST:
        return None
    whole = Fraction(len(failures) ** 2, len(left))
    ranked: list[tuple[Rank, Shared]] = []
    for names in (*combinations(order, 1), *combinations(order, 2)):
        failed = _counted(failures, names)
        there = _counted([point for point, _ in left], names)
        for values, count in failed.items():
            # The square of Ochiai's coefficient, times the number of all failures: exact, so that ties are ties.
            square = Fraction(count**2, there[values])
            if count >= LEAST and square > whole and None not in values:
                known = tuple(str(value) for value in values)
                shared = Shared(tuple(zip(names, known, strict=True)), count, there[values], len(left))
                ranked.append(((-square, len(names), -count, tuple(order[name] for name in names), known), shared))
    return min(ranked, key=lambda candidate: candidate[0])[1] if ranked else None


def _counted(points: Sequence[Values], names: Sequence[str]) -> Counter[tuple[str | None, ...]]:
    """Values of these parameters → number of points."""
    return Counter(zip(*([point.get(name) for point in points] for name in names), strict=True))


def _meets(point: Values, condition: Condition) -> bool:
    return all(point.get(parameter) == value for parameter, value in condition)
