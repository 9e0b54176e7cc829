# SPDX-License-Identifier: Apache-2.0
"""What a link could carry between two moments, beside a reference that counts ms by ms."""

from __future__ import annotations

from itertools import cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.core.capacity import Link
from testctl_agent.spec import trace
from testctl_agent.spec.schedule import Step, show, show_down
from testctl_agent.spec.units import Rate

MS, LAST = 10**6, 60
moments = st.integers(-5, LAST)
ascending = st.lists(st.integers(1, LAST), unique=True, max_size=6).map(sorted)
rates = st.lists(st.one_of(st.none(), st.integers(0, 10**9)), min_size=7, max_size=7)
downs = ascending.map(lambda at: list(zip(at[::2], at[1::2], strict=False)))
traces = st.lists(st.integers(0, 9), min_size=1, max_size=8).map(sorted).filter(lambda times: times[-1] > 0)


def down_text(pairs: list[tuple[int, int]]) -> str:
    return show_down([(low * MS, high * MS) for low, high in pairs])


@given(ascending, rates, downs, st.one_of(st.none(), st.integers(1, 10**9)), moments, moments)
def test_of_a_schedule(
    at: list[int], values: list[int | None], down: list[tuple[int, int]], most: int | None, start: int, end: int
) -> None:
    begins = [0, *at]
    text = show([Step(ms * MS, value) for ms, value in zip(begins, values, strict=False)], Rate)
    link = Link(text if at else values[0], down_text(down), most)
    total: float | None = 0.0
    for ms in range(start, end):
        if any(low <= ms < high for low, high in down):
            continue
        value = values[max((place for place, begin in enumerate(begins) if begin <= ms), default=0)]
        allowed = min((rate for rate in (value, most) if rate is not None), default=None)
        total = None if allowed is None or total is None else total + allowed * 1e-3
    if start < end and (at or down):
        assert link.bits(start * MS, end * MS) == (None if total is None else pytest.approx(total))
        mean = link.mean_bps(start * MS, end * MS)
        assert mean == (None if total is None else pytest.approx(total * 1000 / (end - start)))


@given(traces, downs, moments, moments)
def test_of_a_trace(times: list[int], down: list[tuple[int, int]], start: int, end: int) -> None:
    opportunities, base = [], 0
    for ms, last in islice(cycle([*((ms, False) for ms in times[:-1]), (times[-1], True)]), LAST * 8):
        opportunities.append(base + ms)
        base += times[-1] if last else 0
    used = [at for at in opportunities if start < at <= end and not any(low < at <= high for low, high in down)]
    if start < end:
        link = Link(trace.show(times), down_text(down))
        assert link.bits(start * MS, end * MS) == len(used) * 1504 * 8


@given(ascending, rates, moments, st.integers(0, LAST * MS), st.integers(0, LAST * MS))
def test_of_two_times_is_the_sum(at: list[int], values: list[int | None], start: int, one: int, two: int) -> None:
    steps = [Step(ms * MS, value or 0) for ms, value in zip([0, *at], values, strict=False)]
    link, begin = Link(show(steps, Rate) + ("" if at else "; 1s 1bit")), start * MS
    parts = (link.bits(begin, begin + one) or 0) + (link.bits(begin + one, begin + one + two) or 0)
    assert link.bits(begin, begin + one + two) == pytest.approx(parts)


def test_a_rate_of_no_time() -> None:
    assert Link("10mbit; 2s 50mbit").mean_bps(2 * 10**9, 2 * 10**9) == 5e7
    assert Link(trace.show([1, 2, 4])).mean_bps(0, 0) == 3 * 1504 * 8 / 4e-3
    assert Link("none").mean_bps(0, 10**9) is None
    assert Link.of({"htb_rate": 10**9}).mean_bps(0, 0) == 1e9
    policed = {"rate": 10**8, "aqm": "policer rate 7mbit burst 15kB", "framing": 24}
    assert Link.of(policed) == Link(10**8, most_bps=7 * 10**6, framing=24)
    assert Link.of(policed).mean_bps(0, 10**9) == 7e6
