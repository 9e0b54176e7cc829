# SPDX-License-Identifier: Apache-2.0
"""What the switch says of each packet: its place in the flow, its fate, its ECN field before and after."""

from __future__ import annotations

import pytest
from testctl_agent.spec.fate import parse
from testctl_agent.spec.loss import is_lost, rule_of

from agents.tests.switch.packets import ACK, CE, ECE, ECT0, ECT1, NOT_ECT, UDP, Segment, ethernet, mac
from agents.tests.switch.program import BACKWARD, FORWARD, SIX_BACKWARD, SIX_FORWARD, ProgramSwitch, of, stream, syn

OTHER, DATA, ACKS = 0, 1, 2
NONE, DROP, MARK, DELAY, ECHO, CLEAR, LOSE, REORDER = 0, 1, 2, 3, 4, 5, 6, 11
SENT, DROPPED = 0, 1


@pytest.fixture
def told(switch: ProgramSwitch) -> ProgramSwitch:
    """The switch, without any configuration."""
    if not hasattr(switch.target, "telemetry"):
        pytest.skip("this target tells nothing of its packets")
    switch.target.telemetry()
    return switch


def _record(switch: ProgramSwitch, segment: Segment) -> dict[str, int]:
    switch.through(segment)
    (found,) = switch.target.telemetry()
    return dict(found)


def _told(switch: ProgramSwitch, segments: list[Segment], *names: str) -> list[tuple[int, ...]]:
    records = [_record(switch, segment) for segment in segments]
    return [tuple(record[name] for name in names) for record in records]


@pytest.mark.parametrize("v6", [False, True])
def test_every_field_of_a_data_segment(told: ProgramSwitch, v6: bool) -> None:
    told.through(syn(2**32 - 5, back=True, v6=v6))
    told.target.telemetry()
    segment = Segment(
        2**32 - 4, bytes(500), ack=77, flags=ACK | ECE, ecn=ECT1, back=True, vlan=5, tcp_options=bytes(12), v6=v6
    )
    found = _record(told, segment)
    assert found["arrival_ns"] <= found["departure_ns"]
    times = ("arrival_ns", "departure_ns")
    assert {name: value for name, value in found.items() if name not in times} == {
        "queue_bytes": 0, "wire_bytes": len(segment.build()), "ingress_port": 2, "egress_port": 1, "verdict": SENT,
        "flow": SIX_BACKWARD if v6 else BACKWARD, "kind": DATA, "fate": NONE, "ordinal": 1, "first_ordinal": 1,
        "seq": 2**32 - 4, "ack": 77, "payload": 500, "window": 0xFFF0, "flags": ACK | ECE, "ecn_in": ECT1,
        "ecn_out": ECT1, "park": 0, "hold_ns": 0, "flip_at": 0,
    }  # fmt: skip


@pytest.mark.parametrize("v6", [False, True])
def test_ordinals_of_first_transmissions_and_of_all(told: ProgramSwitch, v6: bool) -> None:
    told.through(syn(v6=v6))
    told.target.telemetry()
    one, two, three = stream(3, v6=v6)
    assert _told(told, [one, two, one, three, two], "ordinal", "first_ordinal") == [
        (1, 1),
        (2, 2),
        (3, 0),
        (4, 3),
        (5, 0),
    ]
    acks = [Segment(5000, ack=n, back=True, v6=v6) for n in range(3)]
    assert _told(told, acks, "flow", "kind", "ordinal", "first_ordinal") == [
        (SIX_BACKWARD if v6 else BACKWARD, ACKS, n, 0) for n in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("action", "ecn", "told_of"),
    [
        ("drop", ECT0, (DROP, ECT0, ECT0, DROPPED)),
        ("mark", ECT0, (MARK, ECT0, CE, SENT)),
        ("mark", CE, (MARK, CE, CE, SENT)),
        ("mark", NOT_ECT, (NONE, NOT_ECT, NOT_ECT, SENT)),
        ("clear", CE, (CLEAR, CE, ECT0, SENT)),
        ("clear", ECT1, (NONE, ECT1, ECT1, SENT)),
        ("echo", NOT_ECT, (ECHO, NOT_ECT, NOT_ECT, SENT)),
    ],
)
@pytest.mark.parametrize("v6", [False, True])
def test_a_fate_is_told_when_it_happened(
    told: ProgramSwitch, action: str, ecn: int, told_of: tuple[int, ...], v6: bool
) -> None:
    told.tables.set_fates(of(f"{action} data 2 of bulk", v6))
    untouched = (NONE, ecn, ecn, SENT)
    found = _told(told, stream(3, ecn=ecn, v6=v6), "fate", "ecn_in", "ecn_out", "verdict")
    assert found == [untouched, told_of, untouched]


@pytest.mark.parametrize("v6", [False, True])
def test_losses_are_told_as_such(told: ProgramSwitch, v6: bool) -> None:
    told.tables.set_fates(of("lose 1 of bulk", v6))
    assert _told(told, stream(2, v6=v6), "fate", "verdict", "departure_ns") == [(LOSE, DROPPED, 0)] * 2


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize(
    ("asked", "fates"),
    [
        ("delay data 2-3 of bulk by 3ms", [NONE, DELAY, DELAY, NONE]),
        ("delay data every 2 of bulk by 3ms", [NONE, DELAY, NONE, DELAY]),
        ("reorder 100% of bulk by 3ms; drop data 4 of bulk", [REORDER, REORDER, REORDER, REORDER]),
        ("drop data 4 of bulk; reorder 100% of bulk by 3ms", [REORDER, REORDER, REORDER, DROP]),
    ],
)
def test_a_delayed_packet_departs_later_by_just_that(
    told: ProgramSwitch, asked: str, fates: list[int], v6: bool
) -> None:
    told.tables.set_fates(of(asked, v6))
    found = _told(told, stream(4, v6=v6), "fate", "hold_ns", "arrival_ns", "departure_ns")
    late = {NONE: 0, DELAY: 3_000_000, REORDER: 3_000_000}
    assert [fate for fate, *_ in found] == fates
    assert all((hold, left - came) == (late[fate],) * 2 for fate, hold, came, left in found if fate != DROP)


@pytest.mark.parametrize("v6", [False, True])
def test_what_is_drawn_to_be_delayed_is_what_the_reference_draws(told: ProgramSwitch, v6: bool) -> None:
    text = of("reorder 0.2 of bulk by 1us seed 7; lose 0.2 of bulk seed 7", v6)
    told.tables.set_fates(text)
    found = _told(told, stream(200, v6=v6), "fate")
    rules = {fate.action: rule_of(fate, SIX_FORWARD if v6 else FORWARD) for fate in parse(text)}
    drawn = [
        REORDER if is_lost(rules["reorder"], n) else LOSE if is_lost(rules["lose"], n) else NONE for n in range(1, 201)
    ]
    assert [fate for (fate,) in found] == drawn
    assert {REORDER, LOSE, NONE} == set(drawn)


@pytest.mark.parametrize("v6", [False, True])
def test_a_mark_by_the_queue_is_no_fate(told: ProgramSwitch, v6: bool) -> None:
    told.tables.set_threshold("two", 3000)
    told.target.queue(2, 3001)
    try:
        found = _told(told, stream(1, ecn=ECT0, v6=v6), "fate", "ecn_in", "ecn_out", "queue_bytes")
        assert found == [(NONE, ECT0, CE, 3001)]
    finally:
        told.target.queue(2, 0)


def test_cleared_and_marked_again_by_the_queue(told: ProgramSwitch) -> None:
    told.tables.set_fates("clear data 1 of bulk")
    told.tables.set_threshold("two", 0)
    assert _told(told, stream(1, ecn=CE), "fate", "ecn_in", "ecn_out") == [(CLEAR, CE, CE)]


def test_what_is_not_tcp_has_a_flow_at_most(told: ProgramSwitch) -> None:
    found = _told(told, [Segment(payload=b"x", protocol=UDP, ecn=ECT0)], "flow", "kind", "ordinal", "payload", "ecn_in")
    assert found == [(0, OTHER, 0, 0, ECT0)]
    told.target.inject(1, ethernet(mac(9), mac(1), 0x9000, bytes(50)))
    assert [(one["verdict"], one["flow"], one["wire_bytes"]) for one in told.target.telemetry()] == [(DROPPED, 0, 64)]


@pytest.mark.parametrize("v6", [False, True])
def test_a_syn_belongs_to_its_flow_but_has_no_ordinal(told: ProgramSwitch, v6: bool) -> None:
    flow = SIX_FORWARD if v6 else FORWARD
    assert _told(told, [syn(v6=v6)], "flow", "kind", "ordinal", "flags") == [(flow, OTHER, 0, 2)]
