# SPDX-License-Identifier: Apache-2.0
"""The model of links that change, compiled natively, against its references, packet by packet."""

from __future__ import annotations

import ctypes
import random
import statistics
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl_agent.spec import jitter, schedule, trace
from testctl_agent.spec.schedule import Step
from testctl_agent.spec.units import Duration, Rate
from testctl_agent.switch.ebpf_links import Link, packed

from agents.tests.switch.changing_link import OPPORTUNITY, ChangingLink, TraceLink, value_at
from agents.tests.switch.test_port_model import Departure, Port, compiled

NATIVE = """
static void *bpf_map_lookup_elem(void *map, const void *key);
#include "link_model.h"
static struct port *port;
static struct link *link_value;
static struct opportunities *trace;
static __u64 origin;
static char of_links, of_trace;
static void *bpf_map_lookup_elem(void *map, const void *key)
{
	misused |= port->lock.held;
	if (map == &ports)
		return port;
	if (map == &links)
		return &of_links;
	if (map == &of_links)
		return link_value;
	if (map == &traces)
		return trace ? &of_trace : NULL;
	if (map == &of_trace)
		return trace + *(const __u32 *)key;
	return map == &link_origin ? &origin : NULL;
}
void begin(struct port *p, void *l, void *t, __u64 at) { port = p; link_value = l; trace = t; origin = at; }
int enqueue(__u64 now, __u32 bytes, struct departure *d)
{
	link_enqueue(1, now, bytes, d);
	return misused;
}
unsigned long size(void) { return sizeof(struct link); }
"""
BEGIN = 5_000_000_123
"""The traffic's start, by CLOCK_MONOTONIC."""


@dataclass
class Native:
    """The model in C, of one port."""

    library: ctypes.CDLL

    def begin(self, link: Link, buffer: int, framing: int, times: Sequence[int] = ()) -> None:
        data = packed(link, times)
        assert self.library.size() == len(data)
        chunks = struct.pack(f"={len(times)}I", *times).ljust(4096 * (len(times) // 1024 + 1), b"\0")
        self.port = Port(buffer=buffer, framing=framing)
        self._kept = ctypes.create_string_buffer(data, len(data)), ctypes.create_string_buffer(chunks, len(chunks))
        inner = self._kept[1] if times else None
        self.library.begin(ctypes.byref(self.port), self._kept[0], inner, ctypes.c_uint64(BEGIN))

    def send(self, now: int, size: int) -> Departure:
        """A packet at a time after the traffic's start."""
        got = Departure()
        assert not self.library.enqueue(ctypes.c_uint64(BEGIN + now), size, ctypes.byref(got)), "the lock is used well"
        return got


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Native:
    return Native(compiled(tmp_path_factory.mktemp("link_model"), NATIVE))


def _sizes(largest: list[tuple[int, int | None]], answered: bool) -> int | str:
    """The value of the parameter; each size is followed by icmp, or none is."""
    if len(largest) == 1 and not answered:
        return largest[0][1] or "none"
    texts = ["none" if size is None else f"{size}B icmp" if answered else f"{size}B" for _, size in largest]
    return "; ".join([texts[0], *(f"{at}ns {text}" for (at, _), text in zip(largest[1:], texts[1:], strict=True))])


TIMES = st.lists(st.integers(1, 3 * 10**7) | st.integers(1, 10**12), max_size=8, unique=True).map(sorted)
RATES = st.sampled_from((0, None, 8, 10**6, 10**9, 10**13)) | st.integers(8, 10**13)
GAPS = st.sampled_from((0, 1, 1200)) | st.integers(0, 10**7) | st.integers(0, 10**12)
SIZES = st.sampled_from((60, 1514)) | st.integers(14, 65_535)


@st.composite
def steps(draw: st.DrawFn, values: st.SearchStrategy[int | None]) -> list[tuple[int, int | None]]:
    times = [0, *draw(TIMES)]
    return list(zip(times, draw(st.lists(values, min_size=len(times), max_size=len(times))), strict=True))


@settings(max_examples=150, deadline=None)
@given(
    rates=steps(RATES),
    delays=steps(st.integers(0, 10**10)),
    downs=TIMES.map(lambda times: list(zip(times[::2], times[1::2], strict=False))),
    buffer=st.just(0) | st.integers(1, 10**6),
    framing=st.sampled_from((0, 24)),
    random=st.sampled_from(("none", "uniform 5ms seed 3", "normal 1ms 2ms seed 4, in order", "exponential 1s seed 5")),
    largest=steps(st.none() | st.integers(68, 2000)),
    answered=st.booleans(),
    packets=st.lists(st.tuples(GAPS, SIZES), min_size=1, max_size=60),
)
def test_is_the_link_of_its_schedule(
    native: Native,
    rates: list[tuple[int, int | None]],
    delays: list[tuple[int, int]],
    downs: list[tuple[int, int]],
    buffer: int,
    framing: int,
    random: str,
    largest: list[tuple[int, int | None]],
    answered: bool,
    packets: list[tuple[int, int]],
) -> None:
    link = Link(
        schedule.show([Step(*one) for one in rates], Rate),
        schedule.show([Step(*one) for one in delays], Duration),
        schedule.show_down(downs),
        random,
        _sizes(largest, answered),
    )
    wanted = ChangingLink(rates, delays, downs, buffer, framing, random, largest, answered)
    if not schedule.is_schedule(link.rate):
        link = replace(link, rate=rates[0][1] if rates[0][1] is not None else "none")
    if not schedule.is_schedule(link.delay):
        link = replace(link, delay=delays[0][1])
    native.begin(link, buffer, framing)
    now = 0
    for gap, size in packets:
        now += gap
        at, depth, lost = wanted.send(now, size)
        got = native.send(now, size)
        assert (None if got.dropped else got.at - BEGIN, got.depth) == (at, depth), (now, size)
        assert got.dropped == (0 if at is not None else wanted.refused or 2 if lost else 1)
        assert got.largest == (value_at(largest, now) if wanted.refused else 0)


@settings(max_examples=100, deadline=None)
@given(
    times=st.lists(st.integers(0, 40), min_size=1, max_size=30).map(sorted).filter(lambda times: times[-1] > 0),
    buffer=st.just(0) | st.integers(1, 30_000),
    packets=st.lists(
        st.tuples(st.sampled_from((0, 10**6, 3 * 10**6)) | st.integers(0, 10**7), SIZES), min_size=1, max_size=60
    ),
)
def test_is_the_link_of_its_trace(
    native: Native, times: list[int], buffer: int, packets: list[tuple[int, int]]
) -> None:
    """Mahimahi's own steps give the same departures, depths and drops."""
    wanted = TraceLink(times, buffer)
    native.begin(Link("trace"), buffer, 0, times)
    now, got = 0, {}
    for gap, size in packets:
        now += gap
        number, depth = wanted.send(now, size)
        departure = native.send(now, size)
        assert (departure.depth, bool(departure.dropped)) == (depth, number is None), (now, size)
        if number is not None:
            got[number] = departure.at - BEGIN
    wanted.run(now + 10**6 * (times[-1] + 1) * (2 + 66_000 * len(packets) // OPPORTUNITY))
    assert got == wanted.left


def test_delivers_exactly_the_opportunities_of_a_trace(native: Native) -> None:
    """With a queue that is never empty every opportunity carries one packet of MTU size, over many repetitions; the
    trace is longer than one element of its map."""
    rng = random.Random(4)
    times = sorted(rng.randint(0, 2000) for _ in range(3000))
    native.begin(Link("trace"), 0, 0, times)
    left = [native.send(0, 1514).at - BEGIN for _ in range(3 * len(times))]
    skipped = times.count(0)  # of the first round: they come when nothing has arrived yet
    want = [ms + times[-1] * turn for turn in range(4) for ms in times][skipped : skipped + len(left)]
    assert left == [ms * 10**6 for ms in want]


def test_a_trace_as_a_value() -> None:
    rng = random.Random(5)
    times = sorted(rng.randint(0, 10**6) for _ in range(20_000))
    text = "".join(f"{ms}\n" for ms in times)
    value = trace.value_of(text.encode())
    assert list(trace.parse(value)) == times
    assert trace.value_of(text.replace("\n", "\r\n").encode()) == value


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "line 1: want a trace .*; got an empty file"),
        (b"1\n5\n4\n", "line 3: want a trace .*; got 4 after 5"),
        (b"1\n\n2\n", "line 2: want a trace .*; got ''"),
        (b"0\n0\n", "line 2: want a trace that ends after 0 ms"),
        (b"1\n2.5\n", r"line 2: .*; got '2\.5'"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "line 1: want a trace"),
        (b"1\n4294967296\n", "line 2: want a trace"),
        (b"-1\n", "line 1: want a trace"),
    ],
)
def test_refuses_what_is_no_trace(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        trace.value_of(data)


def test_jitter_has_its_distribution() -> None:
    """20,000 draws have the distribution's mean and deviation within 3 %, and another seed other draws."""
    for text, mean, deviation in (
        ("uniform 6ms seed 1", 3e6, 6e6 / 12**0.5),
        ("normal 5ms 1ms seed 1", 5e6, 1e6),
        ("exponential 2ms seed 1", 2e6, 2e6),
    ):
        found = jitter.parse(text)
        assert found is not None
        table = jitter.quantiles(found)
        drawn = [jitter.draw(found, table, n) for n in range(20_000)]
        assert statistics.fmean(drawn) == pytest.approx(mean, rel=0.03)
        assert statistics.pstdev(drawn) == pytest.approx(deviation, rel=0.03)
        other = replace(found, seed=2)
        assert [jitter.draw(other, table, n) for n in range(9)] != drawn[:9]


@pytest.mark.parametrize(
    "text",
    ["uniform 5ms", "uniform 5ms 1ms seed 1", "normal 5ms seed 1", "pareto 5ms seed 1", "uniform 2s seed 1",
     "uniform 0ms seed 1", "uniform 5ms seed -1", "uniform 5ms seed 9999999999999999999", "uniform 5 seed 1"],
)  # fmt: skip
def test_refuses_what_is_no_jitter(text: str) -> None:
    with pytest.raises(ValueError, match="want"):
        jitter.parse(text)
