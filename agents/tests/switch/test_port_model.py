# SPDX-License-Identifier: Apache-2.0
"""The port model, compiled natively, against an ideal link in fractions, packet by packet."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from p4c_ebpf import runtime

from agents.tests.switch.ideal_link import MAX_BYTES, Link

HEADER = Path(runtime.__path__[0]) / "port_model.h"
SHIMS = """
#include <linux/types.h>
#include <stddef.h>
#define SEC(name)
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define __array(name, value) value *name[1]
#define __noinline __attribute__((noinline))
#define opaque(x)
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY_OF_MAPS 12
struct bpf_spin_lock { __u32 held; };
static int misused;
static void bpf_spin_lock(struct bpf_spin_lock *lock) { misused |= lock->held++; }
static void bpf_spin_unlock(struct bpf_spin_lock *lock) { misused |= --lock->held; }
#include "port_model.h"
"""
"""What the headers need of BPF, and a lock that is checked."""
NATIVE = """
int enqueue(struct port *port, __u64 now, __u32 bytes, struct departure *departure)
{
	*departure = port_enqueue(port, now, bytes);
	return misused;
}
unsigned long size(void) { return sizeof(struct port); }
"""


class Port(ctypes.Structure):
    _fields_ = (
        ("lock", ctypes.c_uint32),
        ("ifindex", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("rate", "delay", "buffer", "framing", "since", "backlog")),
        *((name, ctypes.c_uint64) for name in ("sent_packets", "sent_bytes", "dropped_packets", "dropped_bytes")),
        ("changes", ctypes.c_uint64),
    )


class Departure(ctypes.Structure):
    _fields_ = (
        ("at", ctypes.c_uint64),
        ("depth", ctypes.c_uint32),
        ("dropped", ctypes.c_uint32),
        ("largest", ctypes.c_uint32),
        ("spare", ctypes.c_uint32),
    )


def compiled(where: Path, source: str) -> ctypes.CDLL:
    """C that follows the shims, as a library."""
    (where / "native.c").write_text(SHIMS + source)
    argv = ["cc", "-O2", "-Wall", "-Werror", "-Wno-unused-variable", f"-I{HEADER.parent}", "-shared", "-fPIC"]
    subprocess.run([*argv, "-o", where / "native.so", where / "native.c"], check=True)
    library = ctypes.CDLL(str(where / "native.so"))
    library.size.restype = ctypes.c_ulong
    return library


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = compiled(tmp_path_factory.mktemp("port_model"), NATIVE)
    assert library.size() == ctypes.sizeof(Port)
    return library


def compare(native: ctypes.CDLL, link: Link, start: int, packets: list[tuple[int, int]]) -> Port:
    """Send packets of (gap in ns, bytes) over both; they agree on each."""
    port = Port(rate=link.rate, delay=link.delay, buffer=link.buffer, framing=link.framing)
    got, now, sent, dropped = Departure(), start, 0, 0
    for gap, size in packets:
        now += gap
        assert not native.enqueue(ctypes.byref(port), ctypes.c_uint64(now), ctypes.c_uint32(size), ctypes.byref(got)), (
            "the lock is taken once and given back"
        )
        at, depth = link.send(now, size)
        assert (None if got.dropped else got.at, got.depth) == (at, depth), (now, size)
        sent, dropped = sent + size * (at is not None), dropped + size * (at is None)
    assert (port.sent_bytes, port.dropped_bytes) == (sent, dropped)
    assert port.sent_packets + port.dropped_packets == len(packets)
    return port


RATES = st.sampled_from((8, 10**6, 3 * 10**9, 10**10, 10**11, 10**13)) | st.integers(8, 10**13)
SIZES = st.sampled_from((60, 64, 1514, 1518, 9014)) | st.integers(14, 65_535)
GAPS = st.sampled_from((0, 1, 256, 1200, 1211)) | st.integers(0, 10**7) | st.integers(0, 10**15)


@settings(max_examples=400, deadline=None)
@given(
    rate=st.just(0) | RATES,
    delay=st.integers(0, 10**12),
    buffer=st.just(0) | st.integers(1, 10**6) | st.integers(1, 2**32 - 1),
    framing=st.sampled_from((0, 24)) | st.integers(0, 1000),
    start=st.integers(0, 2**61),
    packets=st.lists(st.tuples(GAPS, SIZES), min_size=1, max_size=200),
)
@example(rate=3 * 10**9, delay=5000, buffer=30_000, framing=24, start=1, packets=[(0, 1514)] * 30)
@example(rate=10**13, delay=0, buffer=0, framing=0, start=0, packets=[(10**15, 1514)] * 3)
def test_is_an_ideal_link(
    native: ctypes.CDLL, rate: int, delay: int, buffer: int, framing: int, start: int, packets: list[tuple[int, int]]
) -> None:
    compare(native, Link(rate, delay, buffer, framing), start, packets)


@pytest.mark.parametrize("rate", [8, 10**6, 3 * 10**9, 10**10, 7_777_777_777])
def test_has_no_error_that_grows(native: ctypes.CDLL, rate: int) -> None:
    """5,000 packets at 97 % of the rate, then at 103 %, with a buffer."""
    step = 1514 * 8 * 10**9 // rate
    for share in (97, 103):
        gap = step * 100 // share
        compare(native, Link(rate, 12_345, 150_000, 0), 10**9, [(gap, 1514)] * 5_000)


def test_never_holds_more_than_its_numbers_can(native: ctypes.CDLL) -> None:
    """2^31 bytes wait at most, whatever buffer was asked for; the next packet is dropped."""
    for buffer in (0, MAX_BYTES, 2**32 - 1):
        port = compare(native, Link(8, 0, buffer, 2**20 - 65_535), 5, [(0, 65_535)] * 2049)
        assert port.dropped_packets == 1
        assert port.backlog == MAX_BYTES * 8 * 10**9 < 2**64


def test_takes_a_clock_that_lags_as_the_latest_time_it_saw(native: ctypes.CDLL) -> None:
    """Two CPUs read the clock and then come in the other order."""
    port, got = Port(rate=10**9), Departure()
    times = []
    for now in (1000, 990):
        native.enqueue(ctypes.byref(port), ctypes.c_uint64(now), ctypes.c_uint32(125), ctypes.byref(got))
        times.append((got.at, got.depth))
    assert times == [(2000, 0), (3000, 125)]
