# SPDX-License-Identifier: Apache-2.0
"""The range of a number in which a failure stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from testctl.shrink.ranges import Axis, Interval, interval


def probed(axis: Axis, fails: set[int] | range, probes: int) -> tuple[Interval, list[tuple[int, bool]]]:
    """The interval, and what was tried with its answer."""
    tried: list[tuple[int, bool]] = []
    asking = interval(axis, probes)
    try:
        ask = next(asking)
        while True:
            tried.append((ask, ask in fails))
            ask = asking.send(ask in fails)
    except StopIteration as end:
        found: Interval = end.value
        return found, tried


@given(st.data())
def test_the_edges_of_a_range_are_found(data: st.DataObject) -> None:
    """With enough probes, both ends to the step; nothing outside of what the number may be is tried, nothing twice."""
    step = data.draw(st.integers(1, 7))
    least = step * data.draw(st.integers(0, 20))
    most = least + step * data.draw(st.integers(1, 300))
    low, value, high = sorted(data.draw(st.lists(st.integers(least // step, most // step), min_size=3, max_size=3)))
    fails = range(low * step, high * step + 1)
    outside = [n for n in range(least, most + 1, step) if n not in fails]
    passes = data.draw(st.lists(st.sampled_from(outside), max_size=2)) if outside else []
    hints = data.draw(st.lists(st.integers(least, most), max_size=3))
    axis = Axis(value * step, step, least, most, tuple(hints), tuple(passes))
    found, tried = probed(axis, fails, probes=60)
    assert all(least <= ask <= most for ask, _ in tried)
    assert len({ask for ask, _ in tried}) == len(tried)
    assert found.least in fails
    assert found.most in fails
    assert found.above is None or (found.above not in fails and found.above - found.most <= step)
    assert found.below is None or (found.below not in fails and found.least - found.below <= step)
    assert found.above is not None or found.most == most
    assert found.below is not None or found.least == least


@given(st.integers(1, 10**9), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_no_more_probes_than_asked(value: int, probes: int, seed: int) -> None:
    axis = Axis(value, max(value // 10, 1), 0, 10**10)
    _, tried = probed(axis, {n for n in range(3) if seed >> n & 1}, probes)
    assert len(tried) <= 2 * probes


def test_swept_values_come_first_and_known_ones_are_not_tried_again() -> None:
    """A threshold of 3 kB that fails up to 7 kB, with 30 kB in the plan."""
    axis = Axis(3000, 1000, 1, 10**9, hints=(30000,))
    found, tried = probed(axis, range(1500, 7001), probes=8)
    assert tried[0] == (30000, False)
    assert (found.most, found.above) == (7000, 8000)
    again, later = probed(Axis(3000, 1000, 1, 10**9, passes=(30000,)), range(1500, 7001), probes=8)
    assert (again.most, again.above) == (7000, 8000)
    assert 30000 not in dict(later)
