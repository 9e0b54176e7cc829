# SPDX-License-Identifier: Apache-2.0
"""How far two conversations go together."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from testctl.records import Records
from testctl.records.schema import PACKETS
from testctl.reproduce.align import Alignment, align
from testctl.reproduce.application import applications
from testctl.reproduce.wire import wire_of

from controller.tests.reproduce.link import Path


def bulk(**more: object) -> Path:
    path = Path(**more)  # type: ignore[arg-type]
    path.burst(path.begins_us, 0, 10)
    path.acked(30_000, 14_340)
    path.burst(30_000, 10, 10)
    path.acked(50_000, 28_680)
    return path


def compared(a: Records, b: Records) -> Alignment:
    """Two captures of the flow f at its sender; the second has another name for it."""
    wire = wire_of(a)
    return align(a, "a", b, "a", {"f": tuple(applications(a, wire))})


def test_the_same_twice_is_whole() -> None:
    got = compared(bulk().records(), bulk().records())
    assert got.whole
    assert (got.data, got.sent, got.apart, got.first) == (20, 20, {}, "")


def test_a_packet_more_is_not() -> None:
    more = bulk()
    more.burst(50_000, 20, 1)
    got = compared(bulk().records(), more.records())
    assert not got.whole
    assert got.same == got.rows
    assert "only the candidate has it" in got.first


def test_the_first_difference_is_named() -> None:
    other = bulk()
    other.lines = [line.replace("14340:15774", "14340:15000") for line in other.lines]
    got = compared(bulk().records(), other.records())
    assert got.data == 10
    assert "length 1434 → 660" in got.first


def test_another_time_alone_leaves_data_the_same() -> None:
    late = bulk()
    late.lines = [line.replace("30000 a > A 27246", "30001 a > A 27246") for line in late.lines]
    got = compared(bulk().records(), late.records())
    assert (got.all_data, got.whole) == (True, False)
    assert "time_ns 30000000 → 30001000" in got.first


def test_data_at_another_time_is_not_the_same() -> None:
    late = bulk()
    late.lines = [line.replace("30000 a > A 27246", "30100 a > A 27246") for line in late.lines]
    got = compared(bulk().records(), late.records())
    assert (got.data, got.timed, got.all_data) == (20, 19, False)


def test_sums_within_two_percent_and_not() -> None:
    (same, _), *_ = compared(bulk().records(), bulk().records()).sums.values()
    assert same.retransmitted == 0
    assert same.completion_ns == 50_000_000
    near = replace(same, completion_ns=50_900_000)
    assert (same.apart(near), same.apart(replace(same, retransmitted=1))) == ((), ("losses",))
    assert same.apart(replace(same, completion_ns=51_100_000)) == ("completion",)


def both_ways(more: str = "") -> Path:
    """Data of connection 0, then of connection 1, in which b sends it."""
    path = Path()
    path.burst(path.begins_us, 0, 3)
    path.acked(30_000, 3 * 1434)
    for at_us, start in ((40_000, 0), (50_000, 1000)):
        path.lines += [f"{at_us - 5_000} b > A {start}:{start + 1000} ack 0 conn 1",
                       f"{at_us} a < A {start}:{start + 1000} ack 0 conn 1"]  # fmt: skip
    path.lines += [f"{60_000 + 10_000 * conn} a {way} A ack {size} conn {conn}"
                   for conn, way, size in ((0, "<", 4302), (1, ">", 2000))]  # fmt: skip
    return path


def test_data_of_a_flow_in_the_other_direction_is_compared_too() -> None:
    captured, made = both_ways().records(), both_ways()
    made.lines = [line.replace("a < A 1000:2000", "a < A 1000:1500") for line in made.lines]
    rows = [row | ({"flow": "g", "conn": 0} if row["conn"] else {}) for row in made.records().packets.to_pylist()]
    columns = {name: [row[name] for row in rows] for name in PACKETS.names}
    plain = {name: pa.array(column).dictionary_encode() if name in ("where", "flow") else pa.array(column)
             for name, column in columns.items()}  # fmt: skip
    first, second = applications(captured, wire_of(captured))
    assert (first.reverse, second.reverse) == (False, True)
    candidate = replace(captured, packets=pa.table(plain).cast(PACKETS), memo={})
    got = align(captured, "a", candidate, "a", {"f": (first,), "g": (second,)})
    assert (got.data, got.sent) == (4, 5)


def test_a_flow_is_complete_when_its_last_connection_is() -> None:
    path = bulk()
    path.lines += [line + " conn 1" for line in path.lines if not line.startswith("50000")]
    path.lines.append("80000 a < A ack 28680 conn 1")
    (same, _), *_ = compared(path.records(), path.records()).sums.values()
    assert same.completion_ns == 80_000_000
