# SPDX-License-Identifier: Apache-2.0
"""Bounds of operations: what numbers give lies in what their intervals give."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from p4c_ebpf.interval import EVERYTHING, Interval, signed, unsigned

NUMBERS = st.integers(-(1 << 130), 1 << 130) | st.integers(-9, 9)
SHIFTS = st.integers(0, 600) | st.integers(0, 9)


@st.composite
def members(draw: st.DrawFn, numbers: st.SearchStrategy[int] = NUMBERS) -> tuple[Interval, int]:
    """An interval, and a number in it."""
    low, number, high = sorted((draw(numbers), draw(numbers), draw(numbers)))
    return Interval(low, high), number


def single(number: int) -> Interval:
    return Interval(number, number)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "and_", "or_", "xor"])
@given(a=members(), b=members())
def test_operations(name: str, a: tuple[Interval, int], b: tuple[Interval, int]) -> None:
    operation: Callable[..., int] = getattr(operator, name)
    result: Callable[..., Interval] = getattr(operator, name)
    assert single(operation(a[1], b[1])) in result(a[0], b[0])


@given(a=members(), by=members(SHIFTS))
def test_shifts(a: tuple[Interval, int], by: tuple[Interval, int]) -> None:
    assert single(a[1] >> by[1]) in a[0] >> by[0]
    shifted = a[0] << by[0]
    assert shifted == EVERYTHING or single(a[1] << by[1]) in shifted


@given(a=members(st.integers(0, 99)), b=members(st.integers(0, 99)))
def test_division_is_that_of_bpf(a: tuple[Interval, int], b: tuple[Interval, int]) -> None:
    quotient, rest = divmod(a[1], b[1]) if b[1] else (0, a[1])
    assert single(quotient) in a[0] // b[0]
    assert single(rest) in a[0] % b[0]


@given(a=members(), b=members(), bits=st.integers(1, 128))
def test_one_of_two_casts_and_the_complement(a: tuple[Interval, int], b: tuple[Interval, int], bits: int) -> None:
    assert single(a[1]) in a[0].hull(b[0])
    assert single(b[1]) in a[0].hull(b[0])
    assert single(~a[1]) in ~a[0]
    for kind in (signed(bits), unsigned(bits)):
        assert single(min(max(a[1], kind.low), kind.high)) in a[0].clamped(kind)
        assert a[0].clamped(kind) in kind
    cut = a[1] % (1 << bits)
    wrapped = cut - (1 << bits) if cut >> (bits - 1) else cut
    assert single(wrapped) in a[0].wrapped(bits)


@pytest.mark.parametrize("a", [EVERYTHING, Interval(-5, 5), Interval(0, 7)])
def test_what_is_not_known_stays_so(a: Interval) -> None:
    for found in (a // Interval(-1, 1), a % Interval(-1, 1), a << Interval(-1, 1), a >> Interval(-1, 1)):
        assert found == EVERYTHING
    for found in (EVERYTHING >> a, EVERYTHING >> Interval(290, 290), EVERYTHING // Interval(2, 2)):
        assert found == EVERYTHING
    assert EVERYTHING % Interval(2, 3) == EVERYTHING
    assert (EVERYTHING + a).followed() == (~EVERYTHING).followed() == EVERYTHING
    assert EVERYTHING & Interval(0, 7) == Interval(0, 7)
