# SPDX-License-Identifier: Apache-2.0
"""Properties of expansion: what is counted is what is made, covered is covered, ids are stable."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st
from testctl.plan import Plan
from testctl.plan.cover import combinations_count, coverage, covering_array
from testctl.plan.model import Condition
from testctl.plan.space import Space

Load = Callable[..., Plan]
FIXED = settings(derandomize=True, deadline=None, max_examples=150)


def conditions(sizes: list[int], most: int) -> st.SearchStrategy[list[Condition]]:
    def condition(indexes: set[int]) -> st.SearchStrategy[Condition]:
        return st.fixed_dictionaries({i: st.frozensets(st.integers(0, sizes[i] - 1), min_size=1) for i in indexes})

    indexes = st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3)
    return st.lists(indexes.flatmap(condition), max_size=most)


@st.composite
def spaces(draw: st.DrawFn, most_factors: int = 5) -> Space:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=most_factors))
    return Space(sizes, draw(conditions(sizes, 4)))


def by_force(space: Space) -> list[tuple[int, ...]]:
    everything = product(*(range(size) for size in space.sizes))
    return [
        levels
        for levels in everything
        if not any(all(levels[i] in among for i, among in exclude.items()) for exclude in space.excludes)
    ]


@FIXED
@given(spaces())
def test_points_are_the_product_without_the_excluded(space: Space) -> None:
    want = by_force(space)
    assert list(space.points()) == want
    assert space.count(10_000) == len(want)
    assert space.count(3) == min(len(want), 4)


@FIXED
@given(spaces(), st.data())
def test_complete_finds_a_point_just_when_there_is_one(space: Space, data: st.DataObject) -> None:
    indexes = data.draw(st.sets(st.integers(0, len(space.sizes) - 1)))
    fixed = {i: data.draw(st.integers(0, space.sizes[i] - 1)) for i in sorted(indexes)}
    fitting = [levels for levels in by_force(space) if all(levels[i] == level for i, level in fixed.items())]
    found = space.complete(fixed)
    assert found in fitting if fitting else found is None


@FIXED
@given(spaces(6), st.integers(1, 3), st.integers(0, 5))
def test_a_covering_array_covers_every_feasible_tuple(space: Space, strength: int, seed: int) -> None:
    feasible = by_force(space)
    rows = covering_array(space, strength, seed)
    assert set(rows) <= set(feasible)
    assert rows == covering_array(space, strength, seed)
    for indexes in combinations([i for i, size in enumerate(space.sizes) if size > 1], strength):
        assert {tuple(r[i] for i in indexes) for r in rows} == {tuple(r[i] for i in indexes) for r in feasible}


@FIXED
@given(spaces(), st.integers(1, 3), st.data())
def test_coverage_counts_what_is_there(space: Space, strength: int, data: st.DataObject) -> None:
    feasible = by_force(space)
    rows = data.draw(st.lists(st.sampled_from(feasible), max_size=5)) if feasible else []
    factors = [i for i, size in enumerate(space.sizes) if size > 1]

    def tuples(of: list[tuple[int, ...]]) -> int:
        return sum(len({tuple(r[i] for i in indexes) for r in of}) for indexes in combinations(factors, strength))

    found = coverage(space, rows, strength)
    assert (found.covered, found.feasible, found.sampled) == (tuples(rows), tuples(feasible), False)
    assert found.total == combinations_count([space.sizes[i] for i in factors], strength)


def test_coverage_of_a_huge_space_is_a_sample() -> None:
    space = Space([5] * 40, [])
    found = coverage(space, [(0,) * 40, (1,) * 40], 3)
    assert found.sampled
    assert found.total == 9880 * 125
    assert found.feasible == 20_000
    assert abs(found.share - 2 / 125) < 0.005
    assert found == coverage(space, [(0,) * 40, (1,) * 40], 3)


TUPLES = (
    "[hosts, cc, [a, b]]", "[receiver, cc, c]", "[all, mtu, [1500, 9000]]", "[switch, rate, [1gbit, 2gbit]]",
    "['switch:sender', rate, 3gbit]", "[sender, tcp_ecn, 1]", "[bulk, duration, 1s]",
)  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.permutations(TUPLES))
def test_ids_are_the_same_whatever_the_order_of_tuples(plan_of: Load, order: list[str]) -> None:
    def ids(rows: list[str]) -> set[str]:
        return {point.id for point in plan_of("tuples: [" + ", ".join(rows) + "]").points}

    assert ids(order) == ids(list(TUPLES))
    assert len(ids(order)) == 8
