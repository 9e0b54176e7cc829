# SPDX-License-Identifier: Apache-2.0
"""ddmin as a function: what it returns fails and can't be made smaller, whatever the failure depends on."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.shrink.ddmin import Kept, ddmin, drive, split

Fails = Callable[[Kept[int]], bool]
SIZES = st.integers(0, 16)
WIDTHS = st.integers(1, 4)


def reduced(count: int, fails: Fails, width: int) -> tuple[Kept[int], int, list[int]]:
    """(the result, how many different selections were tried, how many at once)"""
    asked: dict[Kept[int], bool] = {}
    batches: list[int] = []

    def ask(batch: list[Kept[int]]) -> list[bool]:
        batches.append(len(batch))
        asked.update({selection: fails(selection) for selection in batch})
        return [asked[selection] for selection in batch]

    return drive(ddmin(range(count), width), ask), len(asked), batches


def minimal(found: Kept[int], fails: Fails) -> bool:
    """It fails, and passes without any one of its items."""
    return fails(found) and not any(fails(tuple(i for i in found if i != item)) for item in found)


@given(SIZES, WIDTHS, st.data())
def test_a_monotone_failure_leaves_exactly_its_cause(count: int, width: int, data: st.DataObject) -> None:
    cause = data.draw(st.sets(st.integers(0, count - 1))) if count else set()
    found, tried, batches = reduced(count, lambda selection: cause <= set(selection), width)
    assert set(found) == cause
    assert list(found) == sorted(found)
    assert tried <= max(count * count + 3 * count, 1)
    assert all(size <= width for size in batches)


@given(SIZES, WIDTHS, st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_any_failure_is_made_one_minimal(count: int, width: int, seed: int, share: float) -> None:
    """A failure that depends on the selection as a hash does: neither monotone nor unambiguous."""

    def fails(selection: Kept[int]) -> bool:
        return len(selection) == count or Random(f"{seed} {selection}").random() < share

    found, tried, _ = reduced(count, fails, width)
    assert minimal(found, fails)
    assert tried <= max(count * count + 3 * count, 1)


@given(SIZES.filter(lambda count: count >= 2), WIDTHS, st.data())
def test_items_that_only_go_together(count: int, width: int, data: st.DataObject) -> None:
    """Some selections can't be tried at all and count as passing: a threshold without its limiter."""
    cause = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    needs = dict(data.draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)))))

    def fails(selection: Kept[int]) -> bool:
        there = set(selection)
        return cause <= there and all(other in there for item, other in needs.items() if item in there)

    assert minimal(reduced(count, fails, width)[0], fails)


def test_few_tries_where_little_matters() -> None:
    """One cause among many is found in about as many tries as its number has bits, times two."""
    _, tried, _ = reduced(64, lambda selection: 41 in selection, 1)
    assert tried <= 2 * 6 + 2


def test_all_of_it_matters() -> None:
    found, tried, _ = reduced(8, lambda selection: len(selection) == 8, 1)
    assert (found, tried) == (tuple(range(8)), 1 + 2 + 4 + 8)


def test_nothing_matters() -> None:
    assert reduced(8, lambda selection: True, 1)[:2] == ((), 1)


@given(st.integers(0, 50), st.integers(1, 60))
def test_parts_hold_everything_once(count: int, parts: int) -> None:
    found = split(count, parts)
    assert [index for part in found for index in part] == list(range(count))
    assert max((len(part) for part in found), default=0) - min((len(part) for part in found), default=0) <= 1


def test_an_error_of_the_trial_comes_through() -> None:
    def broken(batch: list[Kept[int]]) -> list[bool]:
        raise ValueError("the lab is broken")

    with pytest.raises(ValueError, match="the lab is broken"):
        drive(ddmin(range(3)), broken)
