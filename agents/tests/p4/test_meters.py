# SPDX-License-Identifier: Apache-2.0
"""Meters: the marker of RFC 2698 against the same in fractions, and in the kernel."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl_agent.p4c_ebpf import runtime
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Entry, Exact, Rates

from agents.tests.p4.conftest import PROGRAMS
from agents.tests.p4.documents import apply, assign, document, field, number, statement
from agents.tests.p4.harness import EbpfTarget
from agents.tests.p4.packets import PAYLOAD, ethernet

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


def program(packets: bool) -> dict[str, Any]:
    """h.x.r = 9; the meter `m`, by index h.x.i, writes its colour to h.x.r; then h.x.s = h.x.r + 1."""
    made = document({"x_t": [(name, 8) for name in "irst"]}, {"x": "x_t"}, [
        assign(field("x", "r"), number(9)),
        statement("execute_meter", {"type": "meter_array", "value": "m"}, field("x", "i"), field("x", "r")),
        assign(field("x", "s"), apply("&", apply("+", field("x", "r"), number(1)), number(255))),
    ])  # fmt: skip
    made["meter_arrays"] = [{"name": "m", "id": 0, "is_direct": False, "rate_count": 2, "size": 4,
                             "type": "packets" if packets else "bytes"}]  # fmt: skip
    return made


@pytest.fixture
def target(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EbpfTarget]:
    path = tmp_path / "program.json"
    path.write_text(json.dumps(request.param))
    one = EbpfTarget(path)
    yield one
    one.close()


def colours(target: EbpfTarget, index: int, count: int) -> list[int]:
    found = []
    for _ in range(count):
        [(_, out)] = target.inject(1, bytes([index, 0, 0, 0]) + bytes(96))
        assert out[1] == out[2] - 1
        found.append(out[1])
    return found


@pytest.mark.root
@pytest.mark.parametrize("target", [program(packets=False)], indirect=True)
def test_bytes_by_index(target: EbpfTarget) -> None:
    """A meter without rates never fills its buckets again: no time is in the result."""
    assert colours(target, 1, 3) == [0, 0, 0]
    target.driver.meter("m", 1, Rates(0, 299, 0, 500))
    assert colours(target, 1, 7) == [0, 0, 1, 1, 1, 2, 2]
    assert colours(target, 2, 2) == [0, 0]
    target.driver.meter("m", 1, Rates(1 << 39, 250, 1 << 39, 250))  # a burst in less than a nanosecond
    assert colours(target, 1, 9) == [0] * 9
    target.driver.meter("m", 1, None)
    assert colours(target, 1, 3) == [0, 0, 0]
    assert colours(target, 4, 1) == [9]  # no such cell: no colour is written
    with pytest.raises(DriverError, match=r"^m: want an index from 0 to 3; got 4$"):
        target.driver.meter("m", 4, None)
    with pytest.raises(DriverError, match=r"^meter m: want a peak rate of at least the committed one; got "):
        target.driver.meter("m", 1, Rates(2, 1, 1, 1))
    with pytest.raises(DriverError, match=r"^meter m: want rates below 2\^40 and bursts below 2\^32; got "):
        target.driver.meter("m", 1, Rates(0, 1 << 32, 0, 0))


@pytest.mark.root
@pytest.mark.parametrize("target", [program(packets=True)], indirect=True)
def test_packets_by_index(target: EbpfTarget) -> None:
    target.driver.meter("m", 3, Rates(0, 2, 0, 3))
    assert colours(target, 3, 5) == [0, 0, 1, 2, 2]


def direct() -> dict[str, Any]:
    """l2 whose table `forward` has a direct meter of bytes, which writes its colour to the source address."""
    made: dict[str, Any] = json.loads((PROGRAMS / "l2.json").read_text())
    made["pipelines"][0]["tables"][0]["direct_meters"] = "ingress.m"
    made["meter_arrays"] = [{
        "name": "ingress.m", "id": 0, "is_direct": True, "rate_count": 2, "type": "bytes", "size": 16,
        "binding": "ingress.forward", "result_target": ["ethernet", "src"],
    }]  # fmt: skip
    return made


@pytest.mark.root
@pytest.mark.parametrize("target", [direct()], indirect=True)
def test_direct(target: EbpfTarget) -> None:
    rows = [Entry("forward", {"dst": Exact(at)}, "send", {"port": 3}) for at in (5, 6)]
    for row in rows:
        target.driver.insert(row)

    def colour(dst: int) -> int:
        [(_, out)] = target.inject(1, ethernet(0x9999, src=77, dst=dst) + PAYLOAD)
        return int.from_bytes(out[6:12], "big")

    size = len(ethernet(0x9999) + PAYLOAD)
    assert [colour(5), colour(6)] == [0, 0]
    target.driver.direct_meter(rows[0], Rates(0, size, 0, 2 * size))
    assert [colour(5) for _ in range(4)] == [0, 1, 2, 2]
    assert colour(6) == 0
    target.driver.delete(rows[0])
    target.driver.insert(rows[0])  # a new row's meter is not set
    assert [colour(5) for _ in range(3)] == [0, 0, 0]
    with pytest.raises(DriverError, match=r"^table ingress.forward: no such row$"):
        target.driver.direct_meter(Entry("forward", {"dst": Exact(9)}, "send", {"port": 3}), None)
