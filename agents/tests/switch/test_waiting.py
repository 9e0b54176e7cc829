# SPDX-License-Identifier: Apache-2.0
"""How many packets wait at a port, compiled natively, against a list of the times at which each begins to be sent."""

from __future__ import annotations

import ctypes
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.tests.switch.test_port_model import Port, compiled

NATIVE = """
typedef __u8 u8; typedef __u32 u32; typedef __u64 u64;
static void *found;
static void *bpf_map_lookup_elem(void *map, const void *key) { return found; }
#include "waiting.h"
static struct waiting one;
void begin(void) { one = (struct waiting){}; found = &one; }
u32 arrive(struct port *port, __u64 now, __u32 bytes, __u32 *dropped)
{
	struct departure d = port_enqueue(port, now, bytes);

	*dropped = d.dropped;
	return waiting_packets(1, d.depth_bytes, bytes + port->framing_bytes, !d.dropped);
}
unsigned long size(void) { return sizeof(struct port); }
"""
MOST = 4094


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = compiled(tmp_path_factory.mktemp("waiting"), NATIVE)
    assert library.size() == ctypes.sizeof(Port)
    return library


def compare(native: ctypes.CDLL, rate: int, buffer: int, framing: int, packets: list[tuple[int, int]]) -> None:
    """Send packets of (gap in ns, bytes); each finds as many as have come and have not begun to be sent."""
    port, dropped = Port(rate=rate, buffer=buffer, framing=framing), ctypes.c_uint32()
    native.begin()
    now, free, begins = 10**9, Fraction(0), list[Fraction]()
    for gap, size in packets:
        now += gap
        found = native.arrive(ctypes.byref(port), ctypes.c_uint64(now), ctypes.c_uint32(size), ctypes.byref(dropped))
        wanted = sum(begin > now for begin in begins)
        assert found == wanted, (now, size)
        if not dropped.value:
            begins.append(max(free, Fraction(now)))
            free = begins[-1] + Fraction((size + framing) * 8 * 10**9, rate)


@settings(max_examples=200, deadline=None)
@given(
    rate=st.sampled_from((10**6, 10**8, 3 * 10**9)),
    buffer=st.sampled_from((0, 3000, 60_000)),
    framing=st.sampled_from((0, 24)),
    packets=st.lists(
        st.tuples(st.integers(0, 20_000) | st.integers(0, 10**7), st.sampled_from((60, 600, 1514))), max_size=200
    ),
)
def test_it_finds_those_that_have_not_begun_to_be_sent(
    native: ctypes.CDLL, rate: int, buffer: int, framing: int, packets: list[tuple[int, int]]
) -> None:
    compare(native, rate, buffer, framing, packets)


def test_of_a_longer_queue_so_many_are_counted(native: ctypes.CDLL) -> None:
    port, dropped = Port(rate=10**6), ctypes.c_uint32()
    native.begin()
    arrival = (ctypes.byref(port), ctypes.c_uint64(10**9), ctypes.c_uint32(1000), ctypes.byref(dropped))
    found = [native.arrive(*arrival) for _ in range(MOST + 100)]
    assert found == [0, *range(MOST), *[MOST] * 99]
