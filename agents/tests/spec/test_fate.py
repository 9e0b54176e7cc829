# SPDX-License-Identifier: Apache-2.0
"""Fates as text: what is read, what is refused and where, and that nothing is lost on the way."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.spec.fate import CHANGES, HOLDING, LAST, MAX_HOLD_NS, MAX_ROWS, RANDOM, Action, Fate, parse, show
from testctl_agent.spec.flows import MAX_CONNECTIONS, Connection, flow_id
from testctl_agent.spec.flows import parse as parse_flows
from testctl_agent.spec.flows import show as show_flows
from testctl_agent.switch.testbed_program import SIZES


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("drop data 1-4 of bulk", Fate("drop", "bulk", ranges=((1, 4),))),
        ("drop data 6-8, 1-4 of bulk, first", Fate("drop", "bulk", ranges=((1, 4), (6, 8)), first=True)),
        ("drop data 1,2,3 of b", Fate("drop", "b", ranges=((1, 3),))),
        ("mark data every 7 of bulk", Fate("mark", "bulk", every=7)),
        ("echo acks 10-20 of bulk", Fate("echo", "bulk", "acks", ((10, 20),))),
        ("clear data 5- of bulk", Fate("clear", "bulk", ranges=((5, LAST),))),
        ("drop bytes 0-64kB of bulk", Fate("drop", "bulk", "bytes", ((0, 64000),))),
        ("drop bytes 1KiB-2KiB of bulk,first", Fate("drop", "bulk", "bytes", ((1024, 2048),), first=True)),
        ("lose 1e-5 of bulk seed 3", Fate("lose", "bulk", rate=1e-5, seed=3)),
        ("lose 1 of bulk", Fate("lose", "bulk", rate=1.0)),
        ("lose 0.1 % of bulk", Fate("lose", "bulk", rate=0.001)),
        ("lose 1% of bulk burst 4 seed 3", Fate("lose", "bulk", rate=0.01, burst=4.0, seed=3)),
        ("delay data 5-9 of bulk by 3ms", Fate("delay", "bulk", ranges=((5, 9),), by_ns=3_000_000)),
        ("delay acks every 7 of bulk by 20us", Fate("delay", "bulk", "acks", every=7, by_ns=20_000)),
        ("delay bytes 0 of bulk by 1s, first", Fate("delay", "bulk", "bytes", ((0, 0),), first=True, by_ns=10**9)),
        ("reorder 1% of bulk by 2ms seed 3", Fate("reorder", "bulk", rate=0.01, seed=3, by_ns=2_000_000)),
        ("duplicate data 5-9 of bulk", Fate("duplicate", "bulk", ranges=((5, 9),))),
        ("duplicate acks every 2 of bulk", Fate("duplicate", "bulk", "acks", every=2)),
        ("duplicate 1% of bulk seed 3", Fate("duplicate", "bulk", rate=0.01, seed=3)),
        ("corrupt data 7 of bulk, first", Fate("corrupt", "bulk", ranges=((7, 7),), first=True)),
        ("corrupt 0.1% of bulk", Fate("corrupt", "bulk", rate=0.001)),
        ("corrupt header acks 3 of bulk", Fate("corrupt header", "bulk", "acks", ((3, 3),))),
        ("corrupt header 0.1% of bulk", Fate("corrupt header", "bulk", rate=0.001)),
        ("trim bytes 0-64kB of bulk", Fate("trim", "bulk", "bytes", ((0, 64000),))),
        ("swap data 5,7,9 of bulk", Fate("swap", "bulk", ranges=((5, 5), (7, 7), (9, 9)))),
        ("swap data every 7 of bulk", Fate("swap", "bulk", every=7)),
    ],
)
def test_a_text_is_read(text: str, want: Fate) -> None:
    assert parse(text) == (want,)
    assert parse(f"  {text} ;drop data 9 of other") == (want, Fate("drop", "other", ranges=((9, 9),)))


def test_none_is_no_fate() -> None:
    assert parse("none") == ()
    assert show(()) == "none"


def test_the_canonical_text() -> None:
    assert show(parse("drop  data 6-8,1-2,3-4 of bulk , first;lose 0.00001 of bulk")) == (
        "drop data 1-4,6-8 of bulk, first; lose 1e-5 of bulk seed 0"
    )
    assert show(parse("drop bytes 0-64000 of bulk")) == "drop bytes 0-64kB of bulk"
    assert show(parse("reorder 1% of b by 2000us; delay data 1,2 of b by 1ms, first; lose 5% of b burst 2")) == (
        "reorder 0.01 of b by 2ms seed 0; delay data 1-2 of b by 1ms, first; lose 0.05 of b burst 2 seed 0"
    )


ALL = "drop, mark, echo, clear, lose, delay, reorder, duplicate, corrupt, trim, swap"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"want one of {ALL}; got the end at column 1"),
        ("kill data 1 of b", f"want one of {ALL}; got 'kill' at column 1"),
        ("drop packets 1 of b", "want one of data, acks, bytes; got 'packets' at column 6"),
        ("drop data 1-4", "want of; got the end at column 14"),
        ("drop data 1-4 of", "want the name of a flow; got the end at column 17"),
        ("drop data of b", "want an ordinal, a whole number from 1; got 'of' at column 11"),
        ("drop data 0-4 of b", "want an ordinal, a whole number from 1; got 0 at column 11"),
        ("drop data 4-1 of b", "want a range that ends at 4 or above; got 1 at column 13"),
        ("drop data 1-4,3 of b", "want ranges that do not overlap; got 3 after 1-4 at column 15"),
        ("mark data every 0 of b", "want a whole number above 0; got 0 at column 17"),
        ("mark bytes every 7 of b", "want a number of bytes such as 0, 1448 or 64kB; got 'every' at column 12"),
        ("lose 1.5 of b", "want a rate above 0 (not below 2^-32), at most 1 (100%); got 1.5 at column 6"),
        ("lose 0 of b", "want a rate above 0 (not below 2^-32), at most 1 (100%); got 0 at column 6"),
        ("lose 101% of b", "want a rate above 0 (not below 2^-32), at most 1 (100%); got 101% at column 6"),
        ("lose -1 of b", "want a rate above 0, at most 1, such as 1e-5 or 1%; got '-' at column 6"),
        (
            "lose 0.1 of b burst 0.5",
            "want how many are lost in a row on average, at least 1, at most 1000000; got 0.5 ",
        ),
        ("lose 0.9 of b burst 2", "want a burst of at least 9, for a rate of 0.9; got 2 at column 21"),
        ("lose 1 of b burst 2", "want no burst where all are lost; got 2 at column 19"),
        ("reorder 0.1 of b seed 1", "want by; got 'seed' at column 18"),
        ("reorder 0.1 of b by 5s", "want a duration from 1ns to 4s, such as 3ms; got 5s at column 21"),
        ("delay data 1 of b by soon", "want a duration from 1ns to 4s, such as 3ms; got 'soon' at column 22"),
        ("delay data 1 of b by 0ms", "want a duration from 1ns to 4s, such as 3ms; got 0ms at column 22"),
        ("delay data 1 of b by 3", "want a duration from 1ns to 4s, such as 3ms; got '3' at column 22"),
        ("delay data 1 of b", "want by; got the end at column 18"),
        ("delay data 1-4 of b by 1ms; drop data 4 of b", "want ranges that do not overlap those of 'delay data 1-4 of"),
        ("reorder 0.1 of b by 1ms; reorder 0.2 of b by 1ms", "want one reorder for flow b; got reorder 0.2 of b by"),
        ("lose 0.1 of b seed x", "want a seed, a whole number from 0; got 'x' at column 20"),
        ("drop acks 1 of b, first", "want no first: acks of all transmissions are counted; got 'first' at column 19"),
        ("drop data 1 of b first", 'want "," or ";" or the end; got \'first\' at column 18'),
        (
            "drop data 1-4 of b; mark data 4 of b",
            "want ranges that do not overlap those of 'drop data 1-4 of b'; got mark data 4 of b at column 21",
        ),
        ("lose 0.1 of b; lose 0.2 of b", "want one lose for flow b; got lose 0.2 of b seed 0 at column 16"),
        ("drop data every 2 of b; mark data every 3 of b", "want one every for data of flow b; "),
        ("duplicate 2 of b", "want a rate above 0 (not below 2^-32), at most 1 (100%); got 2 at column 11"),
        ("corrupt 0 of b", "want a rate above 0 (not below 2^-32), at most 1 (100%); got 0 at column 9"),
        ("trim half of b", "want data, acks, bytes or a rate above 0, at most 1, such as 1e-5 or 1%; got 'half' at"),
        ("corrupt header", "want data, acks, bytes or a rate above 0, at most 1, such as 1e-5 or 1%; got the end"),
        ("corrupt acks 1 of b", "want data or bytes: ACKs have no payload; got acks at column 9"),
        ("trim acks 1 of b", "want data or bytes: ACKs have no payload; got acks at column 6"),
        ("duplicate 1% of b; duplicate 2% of b", "want one duplicate for flow b; got duplicate 0.02 of b"),
        ("swap 1% of b", "want data; got '1' at column 6"),
        ("swap acks 1 of b", "want data; got 'acks' at column 6"),
        ("swap data 5-9 of b", "want packets of which none is the next one of another: each is swapped with its"),
        ("swap data 3,4 of b", "want packets of which none is the next one of another: each is swapped with its"),
        ("swap data 3- of b", "want packets of which none is the next one of another: each is swapped with its"),
        ("swap data every 1 of b", "want packets of which none is the next one of another: each is swapped with"),
        ("swap data 3 of b; swap data 4 of b", "want no packet that is swapped with one of 'swap data 3 of b'; got"),
        ("duplicate data 5 of b; trim data 5 of b", "want ranges that do not overlap those of 'duplicate data 5 of"),
    ],
)
def test_what_is_refused_and_where(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="at column") as error:
        parse(text)
    assert str(error.value).startswith(message)


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="want at most 16384 characters"):
        parse("drop data 1 of b" + " " * 20_000)


@st.composite
def disjoint(draw: st.DrawFn, least: int) -> tuple[tuple[int, int], ...]:
    """Ranges in order that neither overlap nor touch."""
    ends = draw(st.lists(st.integers(least, LAST), min_size=2, max_size=12, unique=True).map(sorted))
    pairs = [(low, high) for low, high in zip(ends[::2], ends[1::2], strict=False)]
    return tuple(p for i, p in enumerate(pairs) if i == 0 or p[0] > pairs[i - 1][1] + 1)


@st.composite
def fates(draw: st.DrawFn) -> tuple[Fate, ...]:
    """Fates of different flows, so that none clashes with another."""
    found = []
    for number in range(draw(st.integers(0, 4))):
        flow = draw(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)) + str(number)
        by_ns = draw(st.integers(1, MAX_HOLD_NS))
        if draw(st.booleans()):
            action = draw(st.sampled_from((*RANDOM, *CHANGES)))
            burst = draw(st.sampled_from((0.0, 1.0, 2.5, 1e6))) if action == "lose" else 0.0
            rate = draw(st.floats(2**-32, burst / (burst + 1) if burst else 1, exclude_min=True))
            hold = by_ns if action in HOLDING else 0
            found.append(Fate(action, flow, rate=rate, seed=draw(st.integers(0, LAST)), by_ns=hold, burst=burst))
            continue
        action = draw(st.sampled_from(("drop", "mark", "echo", "clear", "delay", *CHANGES)))
        what = draw(st.sampled_from(("data", "bytes") if action in ("corrupt", "trim") else ("data", "acks", "bytes")))
        every = draw(st.integers(0, LAST)) if what != "bytes" else 0
        ranges = () if every else draw(disjoint(0 if what == "bytes" else 1))
        first = draw(st.booleans()) if not every and what != "acks" else False
        found.append(Fate(action, flow, what, ranges, every, first, by_ns=by_ns if action in HOLDING else 0))
    return tuple(found)


@given(fates())
def test_what_is_shown_is_read_back(asked: tuple[Fate, ...]) -> None:
    assert parse(show(asked)) == asked


_WORDS = [
    *get_args(Action),
    "by",
    "burst",
    "data",
    "acks",
    "bytes",
    "every",
    "of",
    "first",
    "seed",
    "none",
    "b",
    *";,-%",
]


@given(st.one_of(st.text(), st.lists(st.sampled_from([*_WORDS, "1", "4", "0", "1e-3", "64kB", "3ms"])).map(" ".join)))
def test_any_text_is_fates_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except ValueError:
        return
    assert parse(show(found)) == found


def test_connections_are_read_back() -> None:
    text = "bulk/0 tcp 10.0.0.1:40000 10.0.0.2:5001; bulk/1 tcp [fd00::1]:40001 [fd00::2]:5001"
    found = parse_flows(text)
    assert found[0] == Connection("bulk", 0, "10.0.0.1", 40000, "10.0.0.2", 5001)
    assert show_flows(found) == text
    assert parse_flows("none") == ()
    assert [flow_id(place, direction) for place in (0, 1) for direction in (0, 1)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "text",
    [
        "bulk tcp 10.0.0.1:1 10.0.0.2:2",
        "bulk/0 udp 10.0.0.1:1 10.0.0.2:2",
        "bulk/0 tcp 10.0.0.1:1 10.0.0.2:65536",
        "bulk/0 tcp 10.0.0.300:1 10.0.0.2:2",
        "bulk/0 tcp 10.0.0.1:1 [fd00::2]:2",
        "",
    ],
)
def test_connections_that_are_not(text: str) -> None:
    with pytest.raises(ValueError, match="want NAME/CONNECTION tcp"):
        parse_flows(text)


def test_what_a_plan_may_ask_has_room_in_the_program() -> None:
    assert SIZES["fate"] == SIZES["every"] == MAX_ROWS
    assert SIZES["connection4"] == SIZES["loss"] == 2 * MAX_CONNECTIONS + 1
