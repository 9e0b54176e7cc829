# SPDX-License-Identifier: Apache-2.0
"""Requested packet actions compared with the telemetry: agreement, and the messages for differences."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.packet_actions import RuleFinding, check_fates
from testctl.packet_actions.findings import ranges_of, words_of
from testctl.packet_actions.loss import are_lost, crc32
from testctl.records import Records, load_raw
from testctl.records.schema import Array
from testctl_agent.spec.loss import is_lost, loss, lost

from controller.tests.support.synthetic import Conversation, bulk, joined, write_point
from controller.tests.support.synthetic_telemetry import befall, passage, write_telemetry

Told = dict[str, Array]
Happen = Callable[[Told], None]


def nothing(told: Told) -> None:
    """No fate."""


def to(fate: str, *ordinals: int, kind: int = 1, by: str = "ordinal", conn: int = 0) -> Happen:
    """A fate of the packets with these ordinals."""

    def happen(told: Told) -> None:
        flow = 1 + 2 * conn + (kind == 2)
        rows = (told["kind"] == kind) & (told["flow"] == flow) & np.isin(told[by], ordinals)
        befall(told, fate, np.flatnonzero(rows))

    return happen


def twice(*ordinals: int, kind: int = 1) -> Happen:
    """Two records of the packets with these ordinals."""

    def happen(told: Told) -> None:
        to("duplicate", *ordinals, kind=kind)(told)
        copies(told, to_rows(told, *ordinals, kind=kind))

    return happen


def to_rows(told: Told, *ordinals: int, kind: int = 1) -> Array:
    return np.flatnonzero((told["kind"] == kind) & np.isin(told["ordinal"], ordinals))


def copies(told: Told, rows: Array) -> None:
    """A second record directly behind each of these."""
    for name, column in told.items():
        told[name] = np.insert(column, rows + 1, column[rows])


def both(*happen: Happen) -> Happen:
    return lambda told: [one(told) for one in happen] and None


def talk(count: int = 10, *, ecn: int = 2, conn: int = 0) -> Conversation:
    """`count` segments, the second sent again as the fifth transmission, an ACK for each."""
    said = Conversation(conn=conn)
    order = [*range(4), 1, *range(4, count)]
    for n, number in enumerate(order):
        said.data(100 + 10 * n, 1448 * number, ecn=0 if n == 4 else ecn)
        said.ack(105 + 10 * n, 1448 * (number + 1))
    return said


def records(
    tmp_path: Path, asked: str, happen: Happen = nothing, *, conversations: tuple[Conversation, ...] = (), lost: int = 0
) -> Records:
    parts = [said.captures()["sender"] for said in conversations or (talk(),)]
    frames = joined(parts)
    write_point(tmp_path, {"sender": frames}, settings={"switch": {"fate": asked}}, parallel=len(parts))
    point = json.loads((tmp_path / "point.json").read_text())
    point["topology"] = {"switches": ["switch"], "links": [["sender", "switch"], ["switch", "receiver"]]}
    (tmp_path / "point.json").write_text(json.dumps(point))
    told = passage(frames)
    happen(told)
    write_telemetry(tmp_path, told, lost=lost)
    return load_raw(tmp_path)


def check(tmp_path: Path, asked: str, happen: Happen = nothing, **more: Any) -> tuple[list[RuleFinding], list[str]]:
    return check_fates(records(tmp_path, asked, happen, **more))


@pytest.mark.parametrize(
    ("asked", "happen", "which", "count"),
    [
        ("drop data 1-4 of bulk", to("drop", 1, 2, 3, 4), "1-4", (4, 4)),
        ("drop data 1-4,8 of bulk, first", to("drop", 1, 2, 3, 4, 8, by="first_ordinal"), "1-4, 8", (5, 5)),
        ("drop data 9- of bulk", to("drop", 9, 10, 11), "9-11", (3, 3)),
        ("mark data every 4 of bulk", to("mark", 4, 8), "4, 8", (2, 2)),
        ("echo acks 2-3 of bulk", to("echo", 2, 3, kind=2), "2-3", (2, 2)),
        ("drop acks every 11 of bulk", to("drop", 11, kind=2), "11", (1, 1)),
        ("drop bytes 0-1448 of bulk", to("drop", 1, 2, 5), "0, 1448", (3, 3)),
        ("drop bytes 0-1448 of bulk, first", to("drop", 1, 2), "0, 1448", (2, 2)),
        ("delay data 2-3 of bulk by 3ms", to("delay", 2, 3), "2-3", (2, 2)),
        ("corrupt data 3 of bulk", to("corrupt", 3), "3", (1, 1)),
        ("corrupt header acks every 11 of bulk", to("corrupt header", 11, kind=2), "11", (1, 1)),
        ("trim data 9- of bulk", to("trim", 9, 10, 11), "9-11", (3, 3)),
        ("swap data 2,4 of bulk", to("swap", 2, 4), "2, 4", (2, 2)),
        ("duplicate data 2-3 of bulk", twice(2, 3), "2-3", (2, 2)),
        ("duplicate acks 11 of bulk", twice(11, kind=2), "11", (1, 1)),
        ("duplicate 1 of bulk seed 0", twice(*range(1, 12)), "1-11", (11, 11)),
        ("none", nothing, "", (0, 0)),
    ],
)
def test_what_happened_as_asked(tmp_path: Path, asked: str, happen: Happen, which: str, count: tuple[int, int]) -> None:
    findings, reasons = check(tmp_path, asked, happen)
    assert reasons == []
    assert [(f.which, (f.asked, f.happened), f.rule) for f in findings] == ([(which, count, asked)] if which else [])


@pytest.mark.parametrize(
    ("asked", "happen", "reason"),
    [
        (
            "drop data 9-12 of bulk, first",
            to("drop", 9, 10, by="first_ordinal"),
            "wanted: drop data 9-12 of bulk, first; happened: 9-10; not: 11-12 (the flow had 10 first transmissions)",
        ),
        (
            "drop data 20- of bulk",
            nothing,
            "wanted: drop data 20- of bulk; happened: none; not: 20- (the flow had 11 data segments)",
        ),
        (
            "duplicate data 2-3 of bulk",
            to("duplicate", 2, 3),
            "wanted: duplicate data 2-3 of bulk; happened: none; not: 2-3 (the switch did not apply it)",
        ),
        (
            "duplicate data 2-3 of bulk",
            twice(2),
            "wanted: duplicate data 2-3 of bulk; happened: 2; not: 3 (the switch did not apply it)",
        ),
        (
            "duplicate data 2 of bulk",
            twice(2, 3),
            "happened: duplicate data 3 of bulk; not requested",
        ),
        (
            "swap data 2 of bulk",
            lambda told: copies(told, to_rows(told, 2)) or to("swap", 2)(told),
            "want a record of every packet in the telemetry; got 12 records for data of bulk, counted up to 11",
        ),
        (
            "corrupt data 5 of bulk",
            nothing,
            "wanted: corrupt data 5 of bulk; happened: none; not: 5 (the switch did not apply it)",
        ),
        (
            "drop data 1-4 of bulk",
            to("drop", 1, 2, 4),
            "wanted: drop data 1-4 of bulk; happened: 1-2, 4; not: 3 (the switch did not apply it)",
        ),
        (
            "mark data 4-6 of bulk",
            to("mark", 4, 6),
            "wanted: mark data 4-6 of bulk; happened: 4, 6; not: 5 (not ECN-capable)",
        ),
        (
            "mark data every 20 of bulk",
            nothing,
            "wanted: mark data every 20 of bulk; happened: none; not: 20 (the flow had 11 data segments)",
        ),
        (
            "drop bytes 1-1447,1MB- of bulk",
            nothing,
            "wanted: drop bytes 1-1447,1MB- of bulk; happened: none; not: 1-1447, 1000000- (no segment began there)",
        ),
        (
            "drop acks 12 of bulk",
            nothing,
            "wanted: drop acks 12 of bulk; happened: none; not: 12 (the flow had 11 ACKs)",
        ),
        (
            "mark data 6 of bulk",
            both(to("mark", 6), to("buffer_drop", 6)),
            "wanted: mark data 6 of bulk; happened: none; not: 6 (dropped by the full buffer or for another reason)",
        ),
        (
            "clear data 2-3 of bulk",
            nothing,
            "wanted: clear data 2-3 of bulk; happened: none; not: 2-3 (without CE)",
        ),
        (
            "drop data 1 of bulk",
            to("drop", 1, 3, 4),
            "happened: drop data 3-4 of bulk; not requested",
        ),
    ],
)  # fmt: skip
def test_a_difference_is_said(tmp_path: Path, asked: str, happen: Happen, reason: str) -> None:
    _, reasons = check(tmp_path, asked, happen)
    assert reasons == [f"switch: {reason}"]


def test_of_the_many_some_may_be_impossible(tmp_path: Path) -> None:
    findings, reasons = check(tmp_path / "a", "mark data every 5 of bulk", to("mark", 10))
    assert (reasons, findings[0].asked, findings[0].happened) == ([], 2, 1)
    assert findings[0].note == "1 not ECN-capable"
    _, reasons = check(tmp_path / "b", "mark data every 5 of bulk", conversations=(talk(ecn=0),))
    assert reasons == ["switch: wanted: mark data every 5 of bulk; happened: none; not: 5, 10 (not ECN-capable)"]


def test_the_first_of_the_rules_that_choose_a_packet_has_it(tmp_path: Path) -> None:
    asked = "drop data 3 of bulk; mark data every 3 of bulk"
    findings, reasons = check(tmp_path, asked, both(to("drop", 3), to("mark", 6, 9)))
    assert reasons == []
    assert [(f.which, f.note) for f in findings] == [("3", ""), ("6, 9", "an earlier rule applied to 1")]
    _, reasons = check(tmp_path / "wrong", asked, to("mark", 3, 6, 9))
    assert len(reasons) == 2
    assert reasons[0].endswith("happened: mark data 3 of bulk; not requested")


def test_each_connection_meets_its_own_fate(tmp_path: Path) -> None:
    two = (talk(), talk(3, conn=1))
    happen = both(to("drop", 4, 5, by="first_ordinal"), to("drop", 4, conn=1))
    findings, reasons = check(tmp_path, "drop data 4-5 of bulk, first", happen, conversations=two)
    assert [(f.conn, f.happened) for f in findings] == [(0, 2), (1, 1)]
    assert reasons == [
        "switch: wanted: drop data 4-5 of bulk, first (bulk, connection 1); happened: 4; "
        "not: 5 (the flow had 4 first transmissions)"
    ]


def test_losses_are_those_of_the_reference(tmp_path: Path) -> None:
    frames = bulk(5000)["sender"]
    asked, rule = "lose 0.01 of bulk seed 3", loss(1, 0.01, 3)
    want = [n for n in range(1, 5001) if is_lost(rule, n)]
    write_point(tmp_path, {"sender": frames}, settings={"switch": {"fate": asked}})
    point = json.loads((tmp_path / "point.json").read_text()) | {"topology": {"switches": ["switch"]}}
    (tmp_path / "point.json").write_text(json.dumps(point))
    told = passage(frames)
    to("lose", *want)(told)
    write_telemetry(tmp_path, told)
    findings, reasons = check_fates(load_raw(tmp_path))
    assert (reasons, findings[0].happened) == ([], len(want))
    assert findings[0].which.endswith(f"({len(want)} in all)")
    to("lose", want[0] + 1)(told)
    write_telemetry(tmp_path, told)
    assert check_fates(load_raw(tmp_path))[1] == [f"switch: happened: lose data {want[0] + 1} of bulk; not requested"]


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1), st.integers(1, 4096), st.floats(1e-4, 1), st.integers(0, 2**32))
def test_the_vector_is_the_reference(numbers: list[int], flow_id: int, rate: float, seed: int) -> None:
    words = np.array(numbers, np.uint32)
    assert crc32(words).tolist() == [zlib.crc32(n.to_bytes(4, "big")) for n in numbers]
    rule = loss(flow_id, rate, seed)
    assert are_lost(rule, words).tolist() == [is_lost(rule, n) for n in numbers]


BURSTS = [(0.01, 1.0), (0.5, 1.0), (0.3, 3.0), (0.9, 20.0), (1e-3, 100.0)]


@given(st.integers(0, 300), st.sampled_from(BURSTS), st.integers(0, 99))
def test_bursts_are_those_of_the_reference(count: int, asked: tuple[float, float], seed: int) -> None:
    rate, burst = asked
    rule = loss(1, rate, seed, burst)
    assert (np.flatnonzero(are_lost(rule, np.arange(1, count + 1))) + 1).tolist() == list(lost(rule, count))


def test_missing_telemetry_makes_a_point_invalid(tmp_path: Path) -> None:
    _, reasons = check(tmp_path, "drop data 1 of bulk", to("drop", 1), lost=7)
    assert reasons == ["switch: 7 records of its telemetry were lost, because its ring was full"]
    (tmp_path / "raw" / "switch" / "telemetry" / "telemetry.bin").unlink()
    (tmp_path / "raw" / "outcome.json").write_text(
        json.dumps({**json.loads((tmp_path / "raw" / "outcome.json").read_text()), "collected": {}})
    )
    assert check_fates(load_raw(tmp_path))[1] == [
        "switch: wanted: drop data 1 of bulk; whether it happened is not known: there is no telemetry"
    ]


def test_a_gap_in_the_telemetry_is_seen(tmp_path: Path) -> None:
    def gap(told: Told) -> None:
        to("drop", 1)(told)
        gone = np.flatnonzero(told["kind"] == 1)[5]
        for name in told:
            told[name] = np.delete(told[name], gone)

    _, reasons = check(tmp_path, "drop data 1 of bulk", gap)
    assert reasons == [
        "switch: want a record of every packet in the telemetry; got 10 records for data of bulk, counted up to 11"
    ]


def test_ranges_in_words() -> None:
    assert words_of(ranges_of(np.array([], np.int64))) == "none"
    assert words_of(ranges_of(np.array([7, 1, 2, 3]))) == "1-3, 7"
    assert words_of(ranges_of(np.arange(1, 101, 2))) == "1, 3, 5, 7, 9, 11, 13, 15, … (50 in all)"
