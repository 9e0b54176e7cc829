# SPDX-License-Identifier: Apache-2.0
"""Meters: the marker of RFC 2698 against the same in fractions, and in the kernel."""

from __future__ import annotations

import ctypes
import subprocess
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from p4c_ebpf import runtime
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Entry, Exact, Rates

from plugins.p4c_ebpf.tests.harness import EbpfTarget, Target
from plugins.p4c_ebpf.tests.packets import PAYLOAD, B, ethernet

NATIVE = """
#include <linux/types.h>
typedef __u32 u32;
typedef __u64 u64;
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
struct bpf_spin_lock { __u32 held; };
static void bpf_spin_lock(struct bpf_spin_lock *lock) { lock->held++; }
static void bpf_spin_unlock(struct bpf_spin_lock *lock) { lock->held--; }
#include "meter.h"
u64 colour(struct meter *m, u64 now, u64 size) { return meter_colour(m, now, size); }
"""
NS = 10**9


class Cell(ctypes.Structure):
    _fields_ = (
        ("lock", ctypes.c_uint32), ("set", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in
          ("committed_rate", "committed_burst", "peak_rate", "peak_burst", "since", "committed", "peak")),
    )  # fmt: skip


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    where = tmp_path_factory.mktemp("meter")
    (where / "native.c").write_text(NATIVE)
    argv = ["cc", "-O2", "-Wall", "-Werror", f"-I{runtime.__path__[0]}", "-shared", "-fPIC"]
    subprocess.run([*argv, "-o", where / "native.so", where / "native.c"], check=True)
    library = ctypes.CDLL(str(where / "native.so"))
    library.colour.argtypes = (ctypes.POINTER(Cell), ctypes.c_uint64, ctypes.c_uint64)
    library.colour.restype = ctypes.c_uint64
    return library


class Marker:
    """RFC 2698, section 3, colour-blind, in fractions."""

    def __init__(self, rates: Rates) -> None:
        self.rates, self.committed, self.peak = rates, Fraction(rates.committed_burst), Fraction(rates.peak_burst)
        self.since = 0

    def colour(self, now: int, size: int) -> int:
        elapsed, self.since = Fraction(now - self.since, NS), now
        self.committed = min(self.committed + elapsed * self.rates.committed, Fraction(self.rates.committed_burst))
        self.peak = min(self.peak + elapsed * self.rates.peak, Fraction(self.rates.peak_burst))
        if self.peak < size:
            return 2
        self.peak -= size
        if self.committed < size:
            return 1
        self.committed -= size
        return 0


def rates() -> st.SearchStrategy[Rates]:
    rate, burst = st.integers(0, (1 << 40) - 1), st.integers(0, (1 << 32) - 1) | st.integers(0, 3000)
    return st.builds(
        lambda a, b, first, second: Rates(min(a, b), first, max(a, b), second),
        rate | st.integers(0, 10**6), rate | st.integers(0, 10**6), burst, burst,
    )  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(rates(), st.lists(st.tuples(st.integers(0, 10**12) | st.integers(0, 10**6), st.integers(1, 2000)), max_size=40))
def test_rfc_2698(native: ctypes.CDLL, given_: Rates, packets: list[tuple[int, int]]) -> None:
    cell = Cell(0, 1, given_.committed, given_.committed_burst, given_.peak, given_.peak_burst, 0,
                given_.committed_burst * NS, given_.peak_burst * NS)  # fmt: skip
    marker, now = Marker(given_), 0
    for later, size in packets:
        now += later
        assert native.colour(cell, now, size) == marker.colour(now, size)
    assert cell.lock == 0


@pytest.fixture
def one(target: Target) -> EbpfTarget:
    return target("meters")


SIZE = len(ethernet(0x9999)) + 5 + len(PAYLOAD)


def colours(one: EbpfTarget, index: int, count: int, dst: int = B) -> tuple[list[int], list[int], list[int]]:
    """Of `count` packets, by the meter of bytes and of packets at this index and by that of the row."""
    found = []
    for _ in range(count):
        sent = ethernet(0x9999, dst=dst) + bytes([index, 0, 0, 0, 0]) + PAYLOAD
        [(_, out)] = one.inject(1, sent)
        assert len(out) == SIZE
        assert out[:15] == sent[:15]
        assert out[16] == out[15] + 1  # what the program makes of the colour
        found.append((out[15], out[17], out[18]))
    return [got[0] for got in found], [got[1] for got in found], [got[2] for got in found]


@pytest.mark.root
def test_bytes_by_index(one: EbpfTarget) -> None:
    """A meter without rates never fills its buckets again: no time is in the result."""
    green, driver = [0, 0, 0], one.driver
    assert colours(one, 1, 3) == (green, green, [9, 9, 9])
    driver.meter("of_bytes", 1, Rates(0, 3 * SIZE - 1, 0, 5 * SIZE))
    assert colours(one, 1, 7)[0] == [0, 0, 1, 1, 1, 2, 2]
    assert colours(one, 2, 2)[0] == [0, 0]
    driver.meter("of_bytes", 1, Rates(1 << 39, 250, 1 << 39, 250))  # a burst in less than a nanosecond
    assert colours(one, 1, 9)[0] == [0] * 9
    driver.meter("of_bytes", 1, None)
    assert colours(one, 1, 3)[0] == green
    assert colours(one, 4, 1) == ([0], [0], [9])  # no such cell: what p4c has the meter write to keeps its 0
    with pytest.raises(DriverError, match=r"^ingress.of_bytes: want an index from 0 to 3; got 4$"):
        driver.meter("of_bytes", 4, None)
    said = r"^meter ingress.of_bytes: want a peak rate of at least the committed one; got "
    with pytest.raises(DriverError, match=said):
        driver.meter("of_bytes", 1, Rates(2, 1, 1, 1))
    said = r"^meter ingress.of_bytes: want rates below 2\^40 and bursts below 2\^32; got "
    with pytest.raises(DriverError, match=said):
        driver.meter("of_bytes", 1, Rates(0, 1 << 32, 0, 0))


@pytest.mark.root
def test_packets_by_index(one: EbpfTarget) -> None:
    one.driver.meter("of_packets", 3, Rates(0, 2, 0, 3))
    assert colours(one, 3, 5)[:2] == ([0] * 5, [0, 0, 1, 2, 2])


@pytest.mark.root
def test_direct(one: EbpfTarget) -> None:
    """Each row has its own; a row whose action does not read it writes no colour."""
    driver, rows = one.driver, [Entry("rows", {"dst": Exact(at)}, "colour") for at in (5, 6)]
    for row in rows:
        driver.insert(row)

    def direct(dst: int, count: int) -> list[int]:
        return colours(one, 1, count, dst)[2]

    assert [direct(dst, 1) for dst in (5, 6, 7)] == [[0], [0], [9]]
    driver.direct_meter(rows[0], Rates(0, SIZE, 0, 2 * SIZE))
    assert direct(5, 4) == [0, 1, 2, 2]
    assert direct(6, 1) == [0]
    driver.delete(rows[0])
    driver.insert(rows[0])  # a new row's meter is not set
    assert direct(5, 3) == [0, 0, 0]
    with pytest.raises(DriverError, match=r"^table ingress.rows: no such row$"):
        driver.direct_meter(Entry("rows", {"dst": Exact(9)}, "colour"), None)
