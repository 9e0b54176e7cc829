# SPDX-License-Identifier: Apache-2.0
"""The evaluation over time against a slow one that looks at every nanosecond, on random traces."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl.core.temporal import Length, Limit, Moment, Temporal
from testctl.temporal.windows import (
    CUT,
    HELD,
    NO_RTT,
    NO_VALUE,
    NOTHING,
    VIOLATED,
    Steps,
    Trace,
    evaluate,
)

END = 14
"""Greatest time in a random trace, ns."""
Samples = list[tuple[int, float]]


def steps(samples: Samples) -> Steps:
    return Steps.of(np.array([t for t, _ in samples], np.int64), np.array([v for _, v in samples], np.float64))


def holds(steps_: Steps, at: int) -> float:
    """The value at a time: of the last sample so far."""
    return next((v for t, v in reversed(list(zip(steps_.time_ns, steps_.value, strict=True))) if t <= at), math.nan)


def reference(condition: Temporal, trace: Trace) -> Iterator[tuple[int, int]]:
    """(state, time of the value that decides or -1) of each window, nanosecond by nanosecond."""
    moment = condition.after or condition.before
    anchors = [trace.begin_ns]
    if moment is not None:
        anchors = [int(t) for t in trace.events[moment.event]] if moment.event else [moment.time_ns]
    for anchor in anchors[:1] if moment and moment.first else anchors:
        yield one_window(condition, trace, anchor)


def one_window(condition: Temporal, trace: Trace, anchor: int) -> tuple[int, int]:
    signal = trace.signals[condition.signal]
    rtt = holds(trace.rtt, anchor)

    def later(base: int, length: Length) -> int:
        if length.unit == "ns":
            return base + int(length.number)
        if length.unit == "rtt":
            return base + round(rtt * length.number)
        acks = [int(t) for t in trace.acks if t > base]
        return acks[int(length.number) - 1] if len(acks) >= length.number else trace.end_ns + 1

    if math.isnan(rtt) and "rtt" in [length.unit for length in condition.lengths]:
        return NO_RTT, -1
    before = holds(signal, anchor - 1)
    if math.isnan(before) and any(limit.before for limit in condition.limits.values()):
        return NO_VALUE, -1
    begin, ends = trace.begin_ns, []
    if condition.after is not None:
        begin = later(anchor, condition.after.offset) if condition.after.offset else anchor
    if condition.before is not None:
        ends.append(anchor - 1)
    if condition.within is not None:
        ends.append(later(begin, condition.within))
    if condition.until is not None and condition.until.event:
        ends += [int(t) - 1 for t in trace.events[condition.until.event] if t > begin][:1]
    elif condition.until is not None:
        ends.append(condition.until.time_ns - 1)
    if begin > trace.end_ns:
        return CUT, -1
    end = min(ends, default=trace.end_ns)
    judged = [
        t
        for t in range(begin, min(end, trace.end_ns) + 1)
        if not math.isnan(holds(signal, t))
        and all(holds(trace.signals[name], t) in among for name, among in condition.during)
    ]
    if not judged:
        return NOTHING, -1

    def meets(t: int) -> bool:
        value = holds(signal, t)

        def bound(limit: Limit) -> float:
            return before * limit.value if limit.before else limit.value

        return (
            (condition.least is None or value >= bound(condition.least))
            and (condition.most is None or value <= bound(condition.most))
            and (condition.equals is None or value == bound(condition.equals))
        )

    decides = next((t for t in judged if meets(t) != condition.always), None)
    if decides is not None:
        return (VIOLATED if condition.always else HELD), decides
    if end > trace.end_ns:
        return CUT, -1
    return (HELD if condition.always else VIOLATED), -1


VALUES = st.integers(0, 4).map(float)
SAMPLES = st.lists(st.tuples(st.integers(0, END), VALUES), max_size=12).map(
    lambda found: sorted(found, key=lambda s: s[0])
)
TIMES = st.lists(st.integers(0, END), max_size=5, unique=True).map(lambda found: np.array(sorted(found), np.int64))
LENGTHS = st.one_of(
    st.builds(Length, st.integers(1, END).map(float)),
    st.builds(Length, st.sampled_from([0.5, 1.0, 3.0]), st.just("rtt")),
    st.builds(Length, st.integers(1, 4).map(float), st.just("acks")),
)


def moments(**more: st.SearchStrategy[object]) -> st.SearchStrategy[Moment]:
    return st.one_of(
        st.builds(Moment, st.sampled_from(["loss", "timeout"]), **more),  # type: ignore[arg-type]
        st.builds(Moment, time_ns=st.integers(0, END + 5)),
    )


LIMITS = st.builds(Limit, st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]), st.booleans())
PLAIN = st.builds(Limit, VALUES)


@st.composite
def conditions(draw: st.DrawFn) -> Temporal:
    """Every word, in all ways that a plan may use them."""
    form = draw(st.sampled_from(["after", "before", "neither"]))
    limits = LIMITS if form == "after" else PLAIN
    after = None
    if form == "after":
        after = replace(draw(moments(first=st.booleans())), offset=draw(st.none() | LENGTHS))
    equals = draw(st.none() | limits)
    least, most = (None if equals else draw(st.none() | limits) for _ in range(2))
    if not (equals or least or most):
        most = draw(limits)
    return Temporal(
        signal="cwnd",
        always=draw(st.booleans()),
        least=least,
        most=most,
        equals=equals,
        after=after,
        within=draw(st.none() | LENGTHS) if form != "before" else None,
        until=draw(st.none() | moments()) if form != "before" else None,
        before=draw(moments(first=st.booleans())) if form == "before" else None,
        during=draw(st.just(()) | st.lists(VALUES, min_size=1, max_size=3).map(lambda v: (("state", tuple(v)),))),
    )


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    begin = draw(st.integers(0, 5))
    return Trace(
        begin_ns=begin,
        end_ns=draw(st.integers(begin, END)),
        signals={"cwnd": steps(draw(SAMPLES)), "state": steps(draw(SAMPLES))},
        events={"loss": draw(TIMES), "timeout": draw(TIMES)},
        rtt=steps([(t, v + 1) for t, v in draw(SAMPLES)]),
        acks=draw(TIMES),
    )


@settings(derandomize=True, deadline=None, max_examples=200)
@given(conditions(), traces())
def test_every_word_on_random_traces(condition: Temporal, trace: Trace) -> None:
    as_the_reference(condition, trace)


@pytest.mark.long
@settings(derandomize=True, deadline=None, max_examples=800)
@given(conditions(), traces())
def test_every_word_on_many_random_traces(condition: Temporal, trace: Trace) -> None:
    as_the_reference(condition, trace)


def as_the_reference(condition: Temporal, trace: Trace) -> None:
    windows = evaluate(condition, trace)
    decided = [
        int(max(windows.values.time_ns[place], begin)) if place >= 0 and state in (HELD, VIOLATED) else -1
        for place, begin, state in zip(windows.place, windows.begin, windows.state, strict=True)
    ]
    assert list(zip(windows.state.tolist(), decided, strict=True)) == list(reference(condition, trace))
