# SPDX-License-Identifier: Apache-2.0
"""Covering arrays: few points that contain every feasible combination of t values.

allpairspy makes the array; it may give up on tuples when there are excludes, so what it leaves
out is found and added.  Coverage of any set of points is counted the same way.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from allpairspy import AllPairs
from testctl_agent.spec.errors import PlanError

from testctl.plan.model import Levels
from testctl.plan.space import Space

MAX_TUPLES = 50_000
SAMPLE = 20_000
Combination = tuple[tuple[int, int], ...]
"""(index, level) pairs, in order of the index."""


@dataclass(frozen=True)
class Coverage:
    """How many of the feasible t-tuples of values occur in the points.

    sampled   the figures are of a fixed sample, since there are too many to count
    total     how many t-tuples there are before excludes
    """

    strength: int
    covered: int
    feasible: int
    total: int
    sampled: bool

    @property
    def share(self) -> float:
        """The covered share; 1.0 if there is nothing to cover."""
        return self.covered / self.feasible if self.feasible else 1.0


def combinations_count(sizes: Sequence[int], strength: int) -> int:
    """The number of value tuples of that strength."""
    counts = [1] + [0] * strength
    for size in sizes:
        for t in range(strength, 0, -1):
            counts[t] += counts[t - 1] * size
    return counts[strength]


def covering_array(space: Space, strength: int, seed: int) -> list[Levels]:
    """Points that cover every feasible tuple of `strength` values; the same for the same seed.

    Raises PlanError when there are too many tuples to cover.
    """
    factors = space.factors
    if strength >= len(factors):
        return list(space.points())
    sizes = [space.sizes[index] for index in factors]
    total = combinations_count(sizes, strength)
    if total > MAX_TUPLES:
        raise PlanError(
            f"design: want at most {MAX_TUPLES} value tuples to cover; cover: {strength} would make {total}"
        )
    if space.complete({}) is None:
        return []
    rows = _allpairs(space, factors, strength, seed) if strength > 1 else []
    seen = _Seen(space, rows)
    missing = [c for c in _all(space, factors, strength) if not seen.has(c)]
    return sorted({*rows, *_repair(space, missing)})


def coverage(space: Space, points: Sequence[Levels], strength: int) -> Coverage:
    """The share of the feasible tuples of `strength` values that the points cover."""
    factors = space.factors
    total = combinations_count([space.sizes[index] for index in factors], strength)
    sampled = total > SAMPLE
    chosen = _sample(space, factors, strength) if sampled else _all(space, factors, strength)
    seen = _Seen(space, points)
    covered = feasible = 0
    for combination in chosen:
        if seen.has(combination):
            covered += 1
            feasible += 1
        elif space.complete(dict(combination)) is not None:
            feasible += 1
    return Coverage(strength, covered, feasible, total, sampled)


class _Seen:
    """For every value the set of points that have it, as the bits of an integer."""

    def __init__(self, space: Space, points: Sequence[Levels]) -> None:
        rows: list[list[bytearray]] = [[bytearray(len(points) // 8 + 1) for _ in range(size)] for size in space.sizes]
        for number, levels in enumerate(points):
            for index, level in enumerate(levels):
                rows[index][level][number // 8] |= 1 << number % 8
        self._bits = [[int.from_bytes(row, "little") for row in level_rows] for level_rows in rows]

    def has(self, combination: Combination) -> bool:
        bits = -1
        for index, level in combination:
            bits &= self._bits[index][level]
        return bits != 0


def _all(space: Space, factors: Sequence[int], strength: int) -> Iterator[Combination]:
    for indexes in combinations(factors, strength):
        for levels in product(*(range(space.sizes[index]) for index in indexes)):
            yield tuple(zip(indexes, levels, strict=True))


def _sample(space: Space, factors: Sequence[int], strength: int) -> Iterator[Combination]:
    """A uniform sample of all tuples, from a fixed seed."""
    values = [(index, level) for index in factors for level in range(space.sizes[index])]
    rng = random.Random(strength)
    drawn = 0
    while drawn < SAMPLE:
        combination = tuple(sorted(rng.sample(values, strength)))
        if len({index for index, _ in combination}) == strength:
            drawn += 1
            yield combination


def _allpairs(space: Space, factors: Sequence[int], strength: int, seed: int) -> list[Levels]:
    """The points of allpairspy, with factors and values shuffled by the seed."""
    rng = random.Random(seed)
    order = rng.sample(list(factors), len(factors))
    values = [rng.sample(range(space.sizes[index]), space.sizes[index]) for index in order]

    def fits(row: Sequence[int]) -> bool:
        return not space.excludes or space.complete(dict(zip(order, row, strict=False))) is not None

    combinations: list[Levels] = []
    for row in AllPairs(values, filter_func=fits, n=strength):
        levels = space.complete(dict(zip(order, row, strict=True)))
        if levels is not None:
            combinations.append(levels)
    return combinations


def _repair(space: Space, missing: Sequence[Combination]) -> Iterator[Levels]:
    """Points that cover each feasible one of these tuples; compatible tuples share a point."""
    open_ones = [c for c in missing if space.complete(dict(c)) is not None]
    while open_ones:
        fixed: dict[int, int] = {}
        rest: list[Combination] = []
        for combination in open_ones:
            together = {**fixed, **dict(combination)}
            clash = any(together[index] != level for index, level in fixed.items())
            if clash or space.complete(together) is None:
                rest.append(combination)
            else:
                fixed = together
        levels = space.complete(fixed)
        assert levels is not None, "every one of these can be completed by itself"
        yield levels
        open_ones = rest


def least_points(sizes: Sequence[int], strength: int) -> int:
    """A lower bound on the points of a covering array without excludes."""
    return math.prod(sorted(sizes, reverse=True)[:strength])
