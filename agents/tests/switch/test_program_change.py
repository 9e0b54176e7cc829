# SPDX-License-Identifier: Apache-2.0
"""Packets that the testbed's program sends twice, corrupts, trims, or exchanges with the next one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.fate import parse
from testctl_agent.spec.flows import Connection, show
from testctl_agent.spec.loss import is_lost, rule_of

from agents.tests.switch.packets import Segment
from agents.tests.switch.program import FORWARD, SIX_FORWARD, ProgramSwitch, of, stream, syn

DUPLICATE, CORRUPT, CORRUPT_HEADER, TRIM, SWAP = range(13, 18)
SHAPES = pytest.mark.parametrize(("v6", "vlan"), [(False, None), (True, None), (False, 5), (True, 5)])
OPTIONS = b"\x01\x01\x08\x0a" + bytes(range(8))


def _asked(switch: ProgramSwitch, text: str) -> None:
    unable = getattr(switch.target, "unable", ())
    if cannot := [one.action for one in parse(text) if one.action in unable]:
        with pytest.raises(ApplyError, match=f"want no {cannot[0]}, which this target can't"):
            switch.tables.set_fates(text)
        pytest.skip(f"this target can't {cannot[0]}")
    switch.tables.set_fates(text)


def _out(switch: ProgramSwitch, segments: Sequence[Segment]) -> list[list[bytes]]:
    """What leaves, all at the right port, after each of them came."""
    found = []
    for segment in segments:
        out = switch.target.inject(2 if segment.back else 1, segment.build())
        assert {port for port, _ in out} <= {1 if segment.back else 2}
        found.append([bytes(packet) for _, packet in out])
    return found


def _payload_at(segment: Segment) -> int:
    return len(segment.build()) - len(segment.payload)


def _corrupted(segment: Segment) -> bytes:
    packet = bytearray(segment.build())
    packet[_payload_at(segment)] ^= 1
    return bytes(packet)


def _with_corrupt_header(segment: Segment) -> bytes:
    packet = bytearray(segment.build())
    packet[_payload_at(segment) - len(segment.tcp_options) - 5] ^= 1  # the window's last byte
    return bytes(packet)


def _trimmed(segment: Segment) -> bytes:
    """IP is as if there were no payload, TCP as if nothing had happened."""
    end = _payload_at(segment)
    tcp = end - 20 - len(segment.tcp_options)
    empty = Segment(**{**segment.__dict__, "payload": b""}).build()
    return empty[:tcp] + segment.build()[tcp:end]


CHANGED = {"corrupt": _corrupted, "corrupt header": _with_corrupt_header, "trim": _trimmed}


@SHAPES
@pytest.mark.parametrize("size", [1, 2, 99, 1448])
def test_a_copy_follows_directly(switch: ProgramSwitch, v6: bool, vlan: int | None, size: int) -> None:
    _asked(switch, of("duplicate data 2-3 of bulk", v6))
    segments = stream(4, size=size, v6=v6, vlan=vlan, tcp_options=OPTIONS)
    packets = [segment.build() for segment in segments]
    assert _out(switch, segments) == [[packets[0]], [packets[1]] * 2, [packets[2]] * 2, [packets[3]]]


@SHAPES
@pytest.mark.parametrize("action", CHANGED)
@pytest.mark.parametrize("size", [1, 2, 99, 1448])
def test_a_changed_packet_has_that_change_alone(
    switch: ProgramSwitch, action: str, v6: bool, vlan: int | None, size: int
) -> None:
    _asked(switch, of(f"{action} data 2 of bulk", v6))
    for options in (b"", OPTIONS):
        switch.reset()
        switch.tables.set_fates(of(f"{action} data 2 of bulk", v6))
        one, two, three = stream(3, size=size, v6=v6, vlan=vlan, dscp=11, tcp_options=options)
        assert _out(switch, [one, two, three]) == [[one.build()], [CHANGED[action](two)], [three.build()]]


@pytest.mark.parametrize("v6", [False, True])
def test_acks_can_be_duplicated_and_their_header_corrupted(switch: ProgramSwitch, v6: bool) -> None:
    _asked(switch, of("duplicate acks 2 of bulk; corrupt header acks 3 of bulk", v6))
    acks = [Segment(5000, ack=1001 + n, back=True, v6=v6) for n in range(3)]
    one, two, three = (ack.build() for ack in acks)
    assert _out(switch, acks) == [[one], [two, two], [_with_corrupt_header(acks[2])]]
    assert three != _with_corrupt_header(acks[2])


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("action", ["duplicate", "corrupt", "trim", "swap"])
def test_every_third_one(switch: ProgramSwitch, action: str, v6: bool) -> None:
    _asked(switch, of(f"{action} data every 3 of bulk", v6))
    segments = stream(8, v6=v6)
    plain = [[segment.build()] for segment in segments]
    for place in (2, 5):
        one, two = segments[place], segments[place + 1]
        match action:
            case "duplicate":
                plain[place] *= 2
            case "swap":
                plain[place], plain[place + 1] = [], [two.build(), one.build()]
            case _:
                plain[place] = [CHANGED[action](one)]
    assert _out(switch, segments) == plain


@SHAPES
def test_swapped_packets_come_out_in_the_other_order(switch: ProgramSwitch, v6: bool, vlan: int | None) -> None:
    """Whatever their sizes are, and what comes of other flows between them."""
    _asked(switch, of("swap data 2,4 of bulk", v6))
    sizes = [100, 1448, 3, 50, 3000, 10]
    segments, at = [], 1001
    for size in sizes:
        segments.append(Segment(at, bytes([size % 251]) * size, v6=v6, vlan=vlan, tcp_options=OPTIONS))
        at += size
    other = Segment(7, b"other", v6=v6, vlan=vlan, sport=39999)
    ack = Segment(5000, ack=1001, back=True, v6=v6, vlan=vlan)
    one, two, three, four, five, six = (segment.build() for segment in segments)
    came = [*segments[:2], other, ack, *segments[2:]]
    assert _out(switch, came) == [[one], [], [other.build()], [ack.build()], [three, two], [], [five, four], [six]]


@pytest.mark.parametrize("v6", [False, True])
def test_a_kept_packet_goes_on_though_the_next_one_is_dropped(switch: ProgramSwitch, v6: bool) -> None:
    _asked(switch, of("swap data 2 of bulk; drop data 3 of bulk", v6))
    one, two, three, four = stream(4, v6=v6)
    assert _out(switch, [one, two, three, four]) == [[one.build()], [], [two.build()], [four.build()]]


def test_a_packet_that_is_kept_when_a_connection_begins_is_forgotten(switch: ProgramSwitch) -> None:
    _asked(switch, "swap data 2 of bulk")
    one, two = stream(2)
    again = stream(3, isn=9000)
    assert _out(switch, [syn(), one, two])[2] == []
    found = _out(switch, [syn(9000), *again])
    assert found == [[syn(9000).build()], [again[0].build()], [], [again[2].build(), again[1].build()]]


def test_connections_have_a_place_each(switch: ProgramSwitch) -> None:
    both = [Connection("bulk", n, "10.0.0.1", 40000 + n, "10.0.0.2", 5201) for n in (0, 1)]
    switch.tables.set_flows(show(both))
    _asked(switch, "swap data 1 of bulk")
    (a1, a2), (b1, b2) = stream(2), stream(2, sport=40001)
    found = _out(switch, [a1, b1, a2, b2])
    assert found == [[], [], [a2.build(), a1.build()], [b2.build(), b1.build()]]


def test_more_connections_than_places_are_refused(switch: ProgramSwitch) -> None:
    many = [Connection("bulk", n, "10.0.0.1", 40000 + n, "10.0.0.2", 5201) for n in range(65)]
    switch.tables.set_flows(show(many))
    if "swap" in getattr(switch.target, "unable", ()):
        pytest.skip("this target can't swap")
    with pytest.raises(ApplyError, match="want at most 64 connections with a swap; got 65"):
        switch.tables.set_fates("swap data 2 of bulk")


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("action", ["duplicate", "corrupt header", "trim", "corrupt"])
def test_what_is_drawn_is_what_the_reference_draws(switch: ProgramSwitch, action: str, v6: bool) -> None:
    text = of(f"{action} 0.2 of bulk seed 7; lose 0.2 of bulk seed 7", v6)
    _asked(switch, text)
    rules = {fate.action: rule_of(fate, SIX_FORWARD if v6 else FORWARD) for fate in parse(text)}
    segments = stream(60, v6=v6)
    wanted = []
    for number, segment in enumerate(segments, 1):
        plain = segment.build()
        if is_lost(rules[action], number):
            wanted.append([plain, plain] if action == "duplicate" else [CHANGED[action](segment)])
        else:
            wanted.append([] if is_lost(rules["lose"], number) else [plain])
    assert _out(switch, segments) == wanted
    assert {len(one) for one in wanted} >= {0, 1}


def test_a_copy_of_what_goes_nowhere_is_not_made(switch: ProgramSwitch) -> None:
    _asked(switch, "duplicate data 1- of bulk")
    nowhere = bytearray(stream(1)[0].build())
    nowhere[5] = 9  # no host's address
    assert switch.target.inject(1, bytes(nowhere)) == []


@pytest.mark.parametrize("v6", [False, True])
def test_the_telemetry_of_changed_packets(switch: ProgramSwitch, v6: bool) -> None:
    if not hasattr(switch.target, "telemetry"):
        pytest.skip("this target tells nothing of its packets")
    switch.tables.set_fates(
        of(
            "duplicate data 2 of bulk; corrupt data 3 of bulk; corrupt header data 4 of bulk; trim data 5 of bulk; "
            "swap data 6 of bulk",
            v6,
        )
    )
    switch.target.telemetry()
    _out(switch, stream(8, v6=v6))
    found = [(one["ordinal"], one["fate"], one["verdict"], one["payload"]) for one in switch.target.telemetry()]
    assert found == [
        (1, 0, 0, 100), (2, DUPLICATE, 0, 100), (2, DUPLICATE, 0, 100), (3, CORRUPT, 0, 100),
        (4, CORRUPT_HEADER, 0, 100), (5, TRIM, 0, 100), (7, 0, 0, 100), (6, SWAP, 0, 100), (8, 0, 0, 100),
    ]  # fmt: skip


def test_a_packet_that_was_kept_tells_when_it_came(switch: ProgramSwitch) -> None:
    if not hasattr(switch.target, "telemetry"):
        pytest.skip("this target tells nothing of its packets")
    switch.tables.set_fates("swap data 1 of bulk")
    switch.target.telemetry()
    _out(switch, stream(2))
    two, one = switch.target.telemetry()
    assert (one["ordinal"], two["ordinal"]) == (1, 2)
    assert one["arrival_ns"] < two["arrival_ns"] <= two["departure_ns"] <= one["departure_ns"]
