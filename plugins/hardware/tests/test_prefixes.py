# SPDX-License-Identifier: Apache-2.0
"""Ranges as prefixes: nothing missing, nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.switch.drivers.driver import Entry, Exact, Range, Ternary
from testctl_hardware.prefixes import prefixes, without_ranges


@given(st.tuples(st.integers(0, 255), st.integers(0, 255)).map(sorted))
def test_each_value_of_the_range_is_matched_once_and_no_other(ends: list[int]) -> None:
    found = list(prefixes(ends[0], ends[1], 8))
    for value in range(256):
        assert sum(value & key.mask == key.value for key in found) == (ends[0] <= value <= ends[1])


@pytest.mark.parametrize(
    ("low", "high", "count"), [(0, 2**32 - 1, 1), (1, 2**32 - 1, 32), (1, 2**32 - 2, 62), (5, 5, 1), (0, 63_999, 6)]
)
def test_are_as_few_as_can_be(low: int, high: int, count: int) -> None:
    assert len(list(prefixes(low, high, 32))) == count


def test_a_row_becomes_one_for_each_choice_of_prefixes() -> None:
    keys = {"flow": Exact(1), "ordinal": Range(1, 2), "offset": Range(0, 2), "kind": Range(1, 2)}
    rows = list(without_ranges(Entry("fate", keys, "drop", {"rank": 3}, 7), {"ordinal": 32, "offset": 32}))
    every = 2**32 - 1
    assert [(row.keys["ordinal"], row.keys["offset"]) for row in rows] == [
        (Ternary(1, every), Ternary(0, every - 1)),
        (Ternary(1, every), Ternary(2, every)),
        (Ternary(2, every), Ternary(0, every - 1)),
        (Ternary(2, every), Ternary(2, every)),
    ]
    assert {(row.keys["flow"], row.keys["kind"], row.priority) for row in rows} == {(Exact(1), Range(1, 2), 7)}


def test_a_row_without_ranges_stays() -> None:
    row = Entry("every", {"flow": Exact(1)}, "every_nth")
    assert list(without_ranges(row, {"ordinal": 32})) == [row]
