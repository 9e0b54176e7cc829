# SPDX-License-Identifier: Apache-2.0
"""Which points come first, and what is not covered."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st
from testctl.plan import load_plan
from testctl.plan.prioritise import by_value, gaps

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno, bbr]]
  - [hosts, tso, [on, off]]
  - [hosts, gro, [on, off]]
  - [bulk, duration, 1s]
exclude: [{hosts.cc: bbr, hosts.tso: off}]
"""

rows_and_costs = st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=25, unique=True).flatmap(
    lambda rows: st.tuples(st.just(rows), st.lists(st.integers(1, 50), min_size=len(rows), max_size=len(rows)))
)


def pairs(row: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
    return set(combinations(enumerate(row), 2))


@given(given=rows_and_costs, strength=st.integers(1, 4))
def test_every_row_comes_once_and_a_common_factor_changes_nothing(
    given: tuple[list[tuple[int, ...]], list[int]], strength: int
) -> None:
    rows, costs = given
    order = by_value(rows, costs, strength)
    assert sorted(order) == list(range(len(rows)))
    assert order == by_value(rows, [cost * 8 for cost in costs], strength)


@given(rows_and_costs)
def test_no_other_row_would_have_brought_more_pairs_for_its_cost(
    given: tuple[list[tuple[int, ...]], list[int]],
) -> None:
    """Against a greedy choice made the slow way."""
    rows, costs = given
    varied = [i for i in range(4) if len({row[i] for row in rows}) > 1]
    rows = [tuple(row[i] for i in varied) for row in rows]
    seen: set[tuple[tuple[int, int], ...]] = set()
    left = set(range(len(rows)))
    for number in by_value(rows, costs, 2):
        gains = {other: len(pairs(rows[other]) - seen) / costs[other] for other in left}
        assert gains[number] == max(gains.values())
        seen |= pairs(rows[number])
        left.remove(number)


def test_the_pairs_that_do_not_meet_are_counted_by_what_can_meet() -> None:
    plan = load_plan(PLAN)
    assert gaps(plan, [point.levels for point in plan.points]) == []
    found = gaps(plan, [point.levels for point in plan.points if point.levels[0] != 1])
    assert [(gap.keys, gap.covered, gap.feasible) for gap in found] == [
        (("hosts.cc", "hosts.tso"), 3, 5),
        (("hosts.cc", "hosts.gro"), 4, 6),
    ]
    full = set(product(range(3), range(2), range(2))) - {(2, 1, 0), (2, 1, 1)}
    assert len(full) == len(plan.points)
