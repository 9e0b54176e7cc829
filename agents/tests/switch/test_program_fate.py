# SPDX-License-Identifier: Apache-2.0
"""The stages of the testbed's program that change packets: fate, loss, marking by queue depth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import pytest
from testctl_agent.spec.errors import ApplyError, DriverError
from testctl_agent.spec.flows import Connection, show
from testctl_agent.spec.loss import is_lost, loss, lost
from testctl_agent.switch.drivers.driver import Entry
from testctl_agent.switch.testbed_tables import TestbedTables

from agents.tests.switch.packets import ACK, CE, ECE, ECT0, ECT1, NOT_ECT, SYN, Segment, checksum, with_ecn
from agents.tests.switch.program import BULK, FORWARD, PORTS, SIX, SIX_FORWARD, STATIONS, ProgramSwitch, of, stream, syn

TEN = 10


def _dropped(switch: ProgramSwitch, segments: list[Segment]) -> list[int]:
    """Places, from 1, of those that did not come out; the others must be as they went in."""
    outcomes = switch.outcomes(segments)
    assert set(outcomes) <= {"", "drop"}
    return [place for place, outcome in enumerate(outcomes, 1) if outcome == "drop"]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("drop data 1 of bulk", [1]),
        ("drop data 1-4,6-8 of bulk", [1, 2, 3, 4, 6, 7, 8]),
        ("drop data 9- of bulk", [9, 10]),
        ("drop data 11 of bulk", []),
        ("drop data every 3 of bulk", [3, 6, 9]),
        ("drop data every 1 of bulk", list(range(1, 11))),
        ("drop data every 11 of bulk", []),
        ("drop bytes 0 of bulk", [1]),
        ("drop bytes 1-100 of bulk", [2]),
        ("drop bytes 150-399 of bulk", [3, 4]),
        ("drop bytes 800- of bulk", [9, 10]),
        ("drop acks 1- of bulk", []),
        ("drop data 1- of six", []),
        ("lose 1 of bulk", list(range(1, 11))),
        ("none", []),
    ],
)
@pytest.mark.parametrize("isn", [1000, 2**32 - 300])
@pytest.mark.parametrize("v6", [False, True])
def test_chosen_packets_are_dropped(switch: ProgramSwitch, text: str, places: list[int], isn: int, v6: bool) -> None:
    switch.tables.set_fates(of(text, v6))
    switch.through(syn(isn, v6=v6))
    assert _dropped(switch, stream(TEN, isn, v6=v6)) == places


@pytest.mark.parametrize("v6", [False, True])
def test_first_transmissions_only_or_any(switch: ProgramSwitch, v6: bool) -> None:
    one, two, three = stream(3, v6=v6)
    sent = [one, two, one, two, one, three, three]
    for text, places in [
        ("drop data 1-2 of bulk, first", [1, 2]),
        ("drop data 3 of bulk, first", [6]),
        ("drop data 1-2 of bulk", [1, 2]),
        ("drop data 3-5 of bulk", [3, 4, 5]),
        ("drop bytes 0-99 of bulk", [1, 3, 5]),
        ("drop bytes 0-199 of bulk, first", [1, 2]),
        ("drop data 3- of bulk, first", [6]),
    ]:
        switch.reset()
        switch.tables.set_fates(of(text, v6))
        switch.through(syn(v6=v6))
        assert _dropped(switch, sent) == places, text


@pytest.mark.parametrize("v6", [False, True])
def test_acks_are_those_of_the_other_direction(switch: ProgramSwitch, v6: bool) -> None:
    switch.tables.set_fates(of("drop acks 2,4- of bulk", v6))
    back = [Segment(5000, ack=1001 + n, back=True, v6=v6) for n in range(5)]
    there = [Segment(1001, ack=5000 + n, v6=v6) for n in range(5)]
    not_acks = [Segment(5000, b"data", back=True, v6=v6), Segment(5000, flags=ACK | SYN, back=True, v6=v6)]
    assert _dropped(switch, [*not_acks, *there, *back]) == [9, 11, 12]


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("vlan", [None, 5])
@pytest.mark.parametrize(
    ("action", "ecn", "outcome"),
    [
        ("mark", NOT_ECT, ""), ("mark", ECT0, "CE"), ("mark", ECT1, "CE"), ("mark", CE, ""),
        ("clear", NOT_ECT, ""), ("clear", ECT0, ""), ("clear", ECT1, ""), ("clear", CE, "ECT0"),
        ("echo", NOT_ECT, "ECE"), ("echo", CE, "ECE"), ("drop", ECT0, "drop"), ("drop", NOT_ECT, "drop"),
    ],
)  # fmt: skip
def test_each_action(switch: ProgramSwitch, action: str, ecn: int, outcome: str, v6: bool, vlan: int | None) -> None:
    switch.tables.set_fates(f"{action} data 2 of bulk; {action} data 2 of six")
    one, two, three = stream(3, ecn=ecn, v6=v6, vlan=vlan, dscp=11)
    assert switch.outcomes([one, two, three]) == ["", outcome, ""]


@pytest.mark.parametrize("v6", [False, True])
def test_a_changed_packet_is_the_packet_with_that_change(switch: ProgramSwitch, v6: bool) -> None:
    switch.tables.set_fates(
        "mark data 1 of {0}; clear data 2 of {0}; echo data 3 of {0}".format("six" if v6 else "bulk")
    )
    one, two, three = (
        Segment(1001 + n, b"odd" * 33, ecn=ecn, v6=v6, tcp_options=b"\x01\x01\x08\x0a" + bytes(8), dscp=63)
        for n, ecn in enumerate((ECT1, CE, ECT0))
    )
    assert switch.through(one) == with_ecn(one.build(), CE)
    assert switch.through(two) == with_ecn(two.build(), ECT0)
    assert switch.through(three) == with_ecn(three.build(), ECT0, ACK | ECE)


@pytest.mark.parametrize("v6", [False, True])
def test_an_echo_that_is_there_already_stays(switch: ProgramSwitch, v6: bool) -> None:
    switch.tables.set_fates(of("echo acks 1- of bulk", v6))
    assert switch.outcomes([Segment(back=True, flags=ACK | ECE, v6=v6), Segment(back=True, v6=v6)]) == ["", "ECE"]


EDGES = [*range(0x42), *range(0x7FC0, 0x8041), *range(0xFFC0, 0xFFFF)]
"""Checksums near carries and the two zeros of one's complement."""


def _word(packet: bytes, at: int) -> int:
    return int.from_bytes(packet[at : at + 2], "big")


@pytest.mark.parametrize(("action", "ecn"), [("mark", ECT0), ("mark", ECT1), ("clear", CE)])
def test_ipv4_checksums_at_the_ends_of_their_range(switch: ProgramSwitch, action: str, ecn: int) -> None:
    """Every edge, made by the identification."""
    switch.tables.set_fates(f"{action} data 1- of bulk")
    without = _word(Segment(1001, b"x", ecn=ecn).build(), 24)
    for wanted in EDGES:
        segment = Segment(1001, b"x", ecn=ecn, identification=(without - wanted) % 0xFFFF)
        assert _word(segment.build(), 24) == wanted
        assert switch.outcome(segment) == {"mark": "CE", "clear": "ECT0"}[action], hex(wanted)


@pytest.mark.parametrize("v6", [False, True])
def test_tcp_checksums_at_the_ends_of_their_range(switch: ProgramSwitch, v6: bool) -> None:
    """Every edge, made by the payload."""
    switch.tables.set_fates(of("echo data 1- of bulk", v6))
    at = 70 if v6 else 50
    without = _word(Segment(1001, bytes(2), v6=v6).build(), at)
    for wanted in EDGES:
        segment = Segment(1001, ((without - wanted) % 0xFFFF).to_bytes(2, "big"), v6=v6)
        assert _word(segment.build(), at) == wanted
        assert switch.outcome(segment) == "ECE", hex(wanted)


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        ("mark data 2 of bulk; drop data every 2 of bulk", ["", "CE", "", "drop"]),
        ("drop data every 2 of bulk; mark data 2-3 of bulk, first", ["", "drop", "CE", "drop"]),
        ("lose 1 of bulk; mark data 1-4 of bulk", ["drop"] * 4),
        ("mark data 1-2 of bulk; lose 1 of bulk", ["CE", "CE", "drop", "drop"]),
        ("mark data every 2 of bulk; lose 1 of bulk", ["drop", "CE", "drop", "CE"]),
        ("mark data 2-3 of bulk; drop data 3-4 of bulk, first", ["", "CE", "CE", "drop"]),
        ("drop data 3-4 of bulk, first; mark data 2-3 of bulk", ["", "CE", "drop", "drop"]),
        ("drop bytes 100-199 of bulk; mark data 1-3 of bulk", ["CE", "drop", "CE", ""]),
    ],
)
@pytest.mark.parametrize("v6", [False, True])
def test_the_first_rule_in_the_text_wins(switch: ProgramSwitch, text: str, outcomes: list[str], v6: bool) -> None:
    switch.tables.set_fates(of(text, v6))
    switch.through(syn(v6=v6))
    assert switch.outcomes(stream(4, ecn=ECT0, v6=v6)) == outcomes


def test_every_counts_each_kind_and_connection_by_itself(switch: ProgramSwitch) -> None:
    both = [Connection("bulk", n, "10.0.0.1", 40000 + n, "10.0.0.2", 5201) for n in (0, 1)]
    switch.tables.set_flows(show(both))
    switch.tables.set_fates("drop data every 2 of bulk; drop acks every 3 of bulk")
    data = [segment for pair in zip(stream(4), stream(4, sport=40001), strict=True) for segment in pair]
    acks = [Segment(back=True, ack=n) for n in range(6)]
    assert _dropped(switch, [*data[:3], *acks[:2], *data[3:], *acks[2:]]) == [3, 6, 9, 10, 11, 14]


def test_every_begins_anew_with_a_connection(switch: ProgramSwitch) -> None:
    switch.tables.set_fates("drop data every 3 of bulk")
    for isn in (1000, 900_000):
        switch.through(syn(isn))
        assert _dropped(switch, stream(4, isn)) == [3]


@pytest.mark.parametrize(("rate", "seed"), [(0.05, 3), (0.5, 2**32 - 1)])
@pytest.mark.parametrize("v6", [False, True])
def test_losses_are_those_of_the_reference(switch: ProgramSwitch, rate: float, seed: int, v6: bool) -> None:
    switch.tables.set_fates(of(f"lose {rate} of bulk seed {seed}", v6))
    count = 3000
    segment = Segment(1001, b"x", v6=v6)
    got = [n for n in range(1, count + 1) if switch.through(segment) is None]
    assert got == list(lost(loss(SIX_FORWARD if v6 else FORWARD, rate, seed), count))


@pytest.mark.parametrize(("rate", "burst"), [(0.1, 4.0), (0.3, 1.0)])
@pytest.mark.parametrize("v6", [False, True])
def test_losses_in_bursts_are_those_of_the_reference(
    switch: ProgramSwitch, rate: float, burst: float, v6: bool
) -> None:
    switch.tables.set_fates(of(f"lose {rate} of bulk burst {burst} seed 4", v6))
    segment = Segment(1001, b"x", v6=v6)
    rule = loss(SIX_FORWARD if v6 else FORWARD, rate, 4, burst)
    for isn in (1, 2):  # another connection begins anew
        switch.through(syn(isn, v6=v6))
        assert [n for n in range(1, 1001) if switch.through(segment) is None] == list(lost(rule, 1000))


def test_a_target_refuses_what_it_can_not_do(switch: ProgramSwitch) -> None:
    tables = TestbedTables(switch.driver, PORTS, STATIONS, unable=("delay", "swap"))
    tables.set_flows(BULK)
    refusal = "want no delay, swap, which this target can't; got delay data 1 of bulk by 1ms; swap data 5 of bulk"
    with pytest.raises(ApplyError, match=refusal):
        tables.set_fates("drop data 2 of bulk; delay data 1 of bulk by 1ms; swap data 5 of bulk")
    tables.set_fates("drop data 2 of bulk; duplicate data 3 of bulk")
    tables.set_fates("none")


def test_a_row_that_the_target_refuses_changes_nothing(switch: ProgramSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    switch.tables.set_fates("drop data 1- of bulk")
    insert = switch.driver.insert
    refused: Iterator[bool] = iter(())

    def insert_or_not(entry: Entry) -> None:
        if next(refused, False):
            raise DriverError("the table is full")
        insert(entry)

    monkeypatch.setattr(switch.driver, "insert", insert_or_not)
    refused = iter((True,))
    with pytest.raises(ApplyError, match="switch, fate: the table is full"):
        switch.tables.set_fates("mark data 2 of bulk")
    refused = iter((False, True))
    with pytest.raises(ApplyError, match="switch, flows: the table is full"):
        switch.tables.set_flows(BULK.replace("5201", "5202"))
    assert (switch.tables.flows(), switch.tables.fates()) == (f"{BULK}; {SIX}", "drop data 1- of bulk")
    assert _dropped(switch, stream(2)) == [1, 2]
    refused = iter((True, True))
    with pytest.raises(ApplyError, match="switch, fate: the table is full; and then: the table is full"):
        switch.tables.set_fates("mark data 2 of bulk")


def test_losses_of_ordinals_near_the_wrap(switch: ProgramSwitch) -> None:
    switch.tables.set_fates("lose 0.5 of bulk seed 8")
    switch.driver.write_register("data_seen", FORWARD, 2**32 - 20)
    rule = loss(FORWARD, 0.5, 8)
    got = [switch.through(Segment(1001, b"x")) is None for _ in range(18)]
    assert got == [is_lost(rule, 2**32 - 19 + n) for n in range(18)]


def test_acks_are_not_lost_at_a_rate(switch: ProgramSwitch) -> None:
    switch.tables.set_fates("lose 1 of bulk")
    assert _dropped(switch, [Segment(1001), Segment(1001, back=True), Segment(1001, b"x", back=True)]) == []


def test_a_million_packets_lose_what_the_reference_loses(switch: ProgramSwitch) -> None:
    """By the thousand: as many are lost in each as the reference says, and as many in all as the rate says."""
    if not hasattr(switch.target, "repeat"):
        pytest.skip("a million packets one by one take this target too long")
    rate, count = 1e-3, 1_000_000
    switch.tables.set_fates(f"lose {rate} of bulk seed 3")
    packet = Segment(1001, b"x").build()
    sent = [switch.driver.counter("port_out", 2).packets]
    for _ in range(count // 1000):
        switch.target.repeat(1, packet, 1000)
        sent.append(switch.driver.counter("port_out", 2).packets)
    expected = [0] * (count // 1000)
    for ordinal in lost(loss(FORWARD, rate, 3), count):
        expected[(ordinal - 1) // 1000] += 1
    assert [1000 - (after - before) for before, after in pairwise(sent)] == expected
    assert abs(sum(expected) - count * rate) <= 3 * math.sqrt(count * rate * (1 - rate))


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize(
    ("ecn", "depth", "outcome"),
    [
        (ECT0, 29_999, ""), (ECT0, 30_000, "CE"), (ECT1, 30_000, "CE"), (ECT1, 29_999, ""), (ECT0, 524_287, "CE"),
        (ECT0, 10_000_000, "CE"), (ECT0, 0, ""), (NOT_ECT, 30_000, ""), (CE, 30_000, ""), (CE, 0, ""),
    ],
)  # fmt: skip
def test_mark_from_the_threshold_on(switch: ProgramSwitch, ecn: int, depth: int, outcome: str, v6: bool) -> None:
    if not hasattr(switch.target, "queue"):
        pytest.skip("this target's queue can't be set to a depth in bytes")
    switch.tables.set_threshold("two", 30_000)
    switch.target.queue(2, depth)
    try:
        assert switch.outcome(stream(1, ecn=ecn, v6=v6)[0]) == outcome
        assert switch.outcome(Segment(1001, b"x", ecn=ecn, v6=v6, back=True)) == "", "the other port has no threshold"
    finally:
        switch.target.queue(2, 0)


@pytest.mark.parametrize("v6", [False, True])
def test_threshold_0_marks_everything_ecn_capable(switch: ProgramSwitch, v6: bool) -> None:
    switch.tables.set_threshold("two", 0)
    assert switch.outcomes([Segment(ecn=ecn, v6=v6) for ecn in (NOT_ECT, ECT0, ECT1, CE)]) == ["", "CE", "CE", ""]


def test_a_cleared_packet_can_be_marked_by_the_queue(switch: ProgramSwitch) -> None:
    switch.tables.set_fates("clear data 1- of bulk")
    switch.tables.set_threshold("two", 0)
    assert switch.outcome(Segment(1001, b"x", ecn=CE)) == ""


def test_checksum_of_the_builder_is_that_of_rfc_1071() -> None:
    assert checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D
