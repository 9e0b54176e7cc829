# SPDX-License-Identifier: Apache-2.0
"""Which points first: those that bring most new combinations of values for what they cost; and what is not covered."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from testctl.plan.cover import Combination
from testctl.plan.model import Levels, Plan
from testctl.plan.points import space_of


@dataclass(frozen=True)
class Gap:
    """Two swept tuples (by their keys) of whose pairs of values some can occur but do not."""

    keys: tuple[str, str]
    covered: int
    feasible: int

    def to_json(self) -> dict[str, Any]:
        return {"of": list(self.keys), "covered": self.covered, "feasible": self.feasible}


def by_value(rows: Sequence[Levels], costs: Sequence[int], strength: int) -> list[int]:
    """The rows' numbers, most new combinations for their cost first; a common factor of the costs changes nothing.

    New pairs count until all pairs of all rows are there, then new triples, and so on up to `strength`
    (at 1, single values).  Rows that bring nothing new come last; equal ones stay in their order.
    """
    left = list(range(len(rows)))
    factors = [index for index in range(len(rows[0]) if rows else 0) if len({row[index] for row in rows}) > 1]
    chosen: list[int] = []
    for t in range(min(2, strength), strength + 1):
        seen = {combination for number in chosen for combination in _of(rows[number], factors, t)}
        picked = _greedy(rows, costs, factors, t, left, seen)
        chosen += picked
        left = sorted(set(left) - set(picked))
    return chosen + left


def covering(rows: Sequence[Levels], strength: int) -> list[int]:
    """The numbers of few rows that have every combination of `strength` values that is in some row."""
    factors = [index for index in range(len(rows[0]) if rows else 0) if len({row[index] for row in rows}) > 1]
    t = min(strength, len(factors)) or 1
    return sorted(_greedy(rows, [1] * len(rows), factors, t, range(len(rows)), set())) or [0]


def _of(row: Levels, factors: Sequence[int], t: int) -> set[Combination]:
    return {tuple((index, row[index]) for index in indexes) for indexes in combinations(factors, t)}


def _greedy(
    rows: Sequence[Levels],
    costs: Sequence[int],
    factors: Sequence[int],
    t: int,
    left: Sequence[int],
    seen: set[Combination],
) -> list[int]:
    """Those of `left` that bring something, best first.  A gain only ever falls, so a stale one is an upper bound."""
    news = {number: _of(rows[number], factors, t) - seen for number in left}
    heap = [(-len(news[number]) / costs[number], number) for number in left]
    heapq.heapify(heap)
    picked = []
    while heap:
        best, number = heapq.heappop(heap)
        news[number] -= seen
        now = -len(news[number]) / costs[number]
        if now == 0:
            continue
        if now != best:
            heapq.heappush(heap, (now, number))
            continue
        picked.append(number)
        seen |= news[number]
    return picked


def gaps(plan: Plan, rows: Sequence[Levels]) -> list[Gap]:
    """The pairs of swept tuples whose values do not all meet in these rows, most missing first."""
    space = space_of(plan)
    gaps_s = []
    for a, b in combinations(space.factors, 2):
        there = {(row[a], row[b]) for row in rows}
        may = {
            pair
            for pair in product(range(plan.sizes[a]), range(plan.sizes[b]))
            if pair in there or space.complete({a: pair[0], b: pair[1]}) is not None
        }
        if len(there) < len(may):
            gaps_s.append(Gap((plan.assignments[a].key, plan.assignments[b].key), len(there), len(may)))
    return sorted(gaps_s, key=lambda gap: gap.covered - gap.feasible)
