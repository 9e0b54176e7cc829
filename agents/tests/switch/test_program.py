# SPDX-License-Identifier: Apache-2.0
"""The stages of the testbed's program up to the count: parse, forward, classify, count, counters."""

from __future__ import annotations

import pytest
from testctl_agent.spec import ecmp, fate, flows
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch import testbed_program
from testctl_agent.switch.drivers.driver import Entry, Exact, Ternary
from testctl_agent.switch.testbed_tables import TestbedTables

from agents.tests.switch.packets import ACK, CE, ECT0, FIN, PSH, RST, SYN, TCP, UDP, Segment, ethernet, mac, with_ecn
from agents.tests.switch.program import BACKWARD, FORWARD, PORTS, STATIONS, ProgramSwitch, address, stream, syn

DATA = b"payload of thirty-two bytes here"
EVERYBODY = b"\xff" * 6


def _extended() -> bytes:
    """TCP behind an IPv6 extension header (hop-by-hop options)."""
    plain = Segment(1001, DATA, v6=True, ecn=ECT0).build()
    hop = bytes([6, 0, 1, 4, 0, 0, 0, 0])
    length = (len(plain) - 54 + len(hop)).to_bytes(2, "big")
    return plain[:18] + length + b"\x00" + plain[21:54] + hop + plain[54:]


def _double_tagged() -> bytes:
    plain = Segment(1001, DATA, ecn=ECT0, vlan=5).build()
    return plain[:12] + b"\x88\xa8\x00\x07" + plain[12:]


UNTOUCHED = {
    "arp": ethernet(mac(2), mac(1), 0x0806, bytes(28)),
    "udp": Segment(payload=DATA, protocol=UDP, ecn=ECT0).build(),
    "udp over IPv6": Segment(payload=DATA, protocol=UDP, ecn=ECT0, v6=True).build(),
    "icmp": Segment(1001, DATA, protocol=1, ecn=ECT0).build(),
    "IPv4 options": Segment(1001, DATA, ecn=ECT0, ip_options=b"\x01" * 8).build(),
    "first fragment": Segment(1001, DATA, ecn=ECT0, more_fragments=True).build(),
    "later fragment": Segment(1001, DATA, ecn=ECT0, fragment_offset=3).build(),
    "IPv6 extension header": _extended(),
    "two VLAN tags": _double_tagged(),
    "IP version 5": b"".join([(p := Segment(1001, DATA, ecn=ECT0).build())[:14], b"\x55", p[15:]]),
    "TCP header of 16 bytes": Segment(1001, DATA, ecn=ECT0, data_offset=4).build(),
    "TCP header beyond its end": Segment(1001, ecn=ECT0, data_offset=9).build(),
}


@pytest.mark.parametrize("what", UNTOUCHED)
def test_parse_leaves_alone_what_is_not_a_tcp_segment(switch: ProgramSwitch, what: str) -> None:
    switch.tables.set_fates("drop data 1- of bulk; drop data 1- of six")
    switch.tables.set_threshold("two", 0)
    out = switch.through(UNTOUCHED[what], port=1)
    is_tcp = "TCP header" in what  # and meets no fate for its lengths, but the queue
    assert out == (with_ecn(UNTOUCHED[what], CE) if is_tcp else UNTOUCHED[what])
    assert switch.seen(FORWARD) == (0, 0, 0)


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("vlan", [None, 5])
def test_parse_leaves_alone_what_is_cut_short(switch: ProgramSwitch, v6: bool, vlan: int | None) -> None:
    """At every length up to the last byte of the TCP header; BPF_PROG_TEST_RUN wants the IP header of an IP packet."""
    switch.tables.set_fates("drop data 1- of bulk; drop data 1- of six")
    whole = Segment(1001, DATA, v6=v6, vlan=vlan, ecn=ECT0).build()
    header = len(whole) - len(DATA)
    for length in range(header - 20 if vlan is None else 18, header):
        assert switch.through(whole[:length], port=1) == whole[:length], f"{length} bytes"
    assert switch.through(whole, port=1) is None


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("vlan", [None, 0, 5, 0xE005])
def test_parse_finds_tcp_behind_a_tag(switch: ProgramSwitch, v6: bool, vlan: int | None) -> None:
    switch.tables.set_fates("mark data 1 of bulk; mark data 1 of six")
    assert switch.outcome(Segment(1001, DATA, v6=v6, vlan=vlan, ecn=ECT0)) == "CE"


def test_forward_to_the_station(switch: ProgramSwitch) -> None:
    for source in (1, 2, 3):
        for sink in {1, 2, 3} - {source}:
            packet = ethernet(mac(sink), mac(source), 0x9000, DATA)
            assert switch.target.inject(source, packet) == [(sink, packet)]


def test_forward_discards_what_has_nowhere_to_go(switch: ProgramSwitch) -> None:
    assert switch.target.inject(1, ethernet(mac(9), mac(1), 0x9000, DATA)) == []
    assert switch.target.inject(1, ethernet(mac(1), mac(9), 0x9000, DATA)) == [], "nor back where it came from"


@pytest.mark.parametrize("group", [EVERYBODY, b"\x33\x33\xff\x00\x00\x02", b"\x01\x00\x5e\x00\x00\x01"])
def test_forward_floods_to_all_other_ports(switch: ProgramSwitch, group: bytes) -> None:
    for source in (1, 2, 3):
        packet = ethernet(group, mac(source), 0x0806, bytes(28))
        assert sorted(switch.target.inject(source, packet)) == [(n, packet) for n in (1, 2, 3) if n != source]


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("protocol", [TCP, UDP])
@pytest.mark.parametrize("seed", [0, 1])
def test_forward_spreads_connections_over_equal_ways(switch: ProgramSwitch, v6: bool, protocol: int, seed: int) -> None:
    """Each by the draw of its five-tuple (spec/ecmp.py); another seed gives other ways."""
    stations = {**STATIONS, address(2): ("three", "two", "three", "two", "two")}
    first, second = ("fd00::1", "fd00::2") if v6 else ("10.0.0.1", "10.0.0.2")
    salt, ports = ecmp.salt_of(seed), [PORTS[device] for device in stations[address(2)]]
    try:
        TestbedTables(switch.driver, PORTS, stations).set_ecmp_seed(seed)
        taken = []
        for sport in range(40000, 40040):
            packet = Segment(1001, DATA, v6=v6, sport=sport, protocol=protocol).build()
            draw = ecmp.draw(salt, (first, sport), (second, 5201), protocol)
            assert switch.target.inject(1, packet) == [(ports[ecmp.way(draw, len(ports))], packet)]
            taken.append(ports[ecmp.way(draw, len(ports))])
        assert set(taken) == {2, 3}
    finally:
        TestbedTables(switch.driver, PORTS, STATIONS)


def test_forward_floods_over_a_tree(switch: ProgramSwitch) -> None:
    packet = ethernet(EVERYBODY, mac(1), 0x0806, bytes(28))
    try:
        TestbedTables(switch.driver, PORTS, {**STATIONS, ecmp.BROADCAST: ("one", "three")})
        assert switch.target.inject(1, packet) == [(3, packet)]
        assert sorted(switch.target.inject(2, packet)) == [(1, packet), (3, packet)]
    finally:
        TestbedTables(switch.driver, PORTS, STATIONS)


def test_classify_by_five_tuple_in_both_directions(switch: ProgramSwitch) -> None:
    switch.tables.set_flows("a/0 tcp 10.0.0.1:40000 10.0.0.2:5201; b/0 tcp 10.0.0.1:40001 10.0.0.2:5201")
    before = [switch.flow_packets(flow) for flow in range(1, 5)]
    for segment in (
        Segment(), Segment(), Segment(back=True), Segment(sport=40001, back=True), Segment(sport=40002),
        Segment(dport=5202), Segment(v6=True),
    ):  # fmt: skip
        switch.through(segment)
    assert [switch.flow_packets(flow) - was for flow, was in zip(range(1, 5), before, strict=True)] == [2, 1, 0, 1]


def test_classify_ipv6(switch: ProgramSwitch) -> None:
    before = switch.flow_packets(3), switch.flow_packets(4)
    for segment in (Segment(v6=True), Segment(v6=True, back=True), Segment(v6=True, back=True)):
        switch.through(segment)
    assert (switch.flow_packets(3) - before[0], switch.flow_packets(4) - before[1]) == (1, 2)


def _wildcard(flow: int, priority: int, v6: bool = False, **keys: Ternary) -> Entry:
    return Entry("classify6" if v6 else "classify4", keys, "set_flow", {"flow": flow}, priority)


def test_classify_with_wildcards(switch: ProgramSwitch) -> None:
    """A prefix of the source, one bit of the port, a protocol, and nothing at all: the highest priority wins."""
    switch.driver.insert(_wildcard(11, 40, src=Ternary(0x0A000000, 0xFFFFFF00), dport=Ternary(7000, 0xFFFF)))
    switch.driver.insert(_wildcard(12, 30, sport=Ternary(1, 1), protocol=Ternary(6, 0xFF)))
    switch.driver.insert(_wildcard(13, 20, protocol=Ternary(17, 0xFF)))
    switch.driver.insert(_wildcard(14, 10))
    cases = [
        (Segment(dport=7000), 11),
        (Segment(dport=7000, sport=41001), 11),
        (Segment(sport=41001), 12),
        (Segment(protocol=UDP, payload=DATA, sport=41001), 13),
        (Segment(sport=41000), 14),
        (Segment(back=True, sport=41000), 12),
        (Segment(), FORWARD),
    ]
    for segment, flow in cases:
        before = switch.flow_packets(flow)
        switch.through(segment)
        assert switch.flow_packets(flow) == before + 1, segment


def test_classify_ipv6_with_wildcards(switch: ProgramSwitch) -> None:
    high = 0xFD00 << 112
    switch.driver.insert(_wildcard(21, 2, v6=True, src=Ternary(high | 1, 2**128 - 1), sport=Ternary(9, 0xFFFF)))
    switch.driver.insert(_wildcard(22, 1, v6=True, dst=Ternary(high, 0xFFFF << 112)))
    for segment, flow in [(Segment(v6=True, sport=9), 21), (Segment(v6=True, sport=8), 22), (Segment(v6=True), 3)]:
        before = switch.flow_packets(flow)
        switch.through(segment)
        assert switch.flow_packets(flow) == before + 1, segment


def test_count_tells_data_acks_and_the_rest_apart(switch: ProgramSwitch) -> None:
    for segment in (
        syn(),
        Segment(1001),
        Segment(1001, DATA),
        Segment(1001 + 32, DATA, flags=ACK | FIN),
        Segment(1065, flags=ACK | FIN),
        Segment(1066, flags=RST),
        Segment(1066),
        Segment(1066, flags=ACK | PSH, padding=6),
        Segment(1001, tcp_options=bytes(12)),
    ):
        assert switch.outcome(segment) == ""
    assert switch.seen(FORWARD) == (2, 2, 4)
    assert switch.seen(BACKWARD) == (0, 0, 0)


@pytest.mark.parametrize("v6", [False, True])
def test_count_knows_payload_from_options_and_padding(switch: ProgramSwitch, v6: bool) -> None:
    for segment in (
        Segment(1001, v6=v6, tcp_options=bytes(40)),
        Segment(1001, v6=v6, padding=1),
        Segment(1001, b"x", v6=v6),
        Segment(1002, b"x", v6=v6, tcp_options=bytes(40), padding=20),
    ):
        switch.through(segment)
    assert switch.seen(3 if v6 else FORWARD)[::2] == (2, 2)


@pytest.mark.parametrize("isn", [1000, 2**32 - 1, 2**32 - 2, 2**32 - 250, 2**31 - 250, 0])
def test_count_first_transmissions_across_the_wrap(switch: ProgramSwitch, isn: int) -> None:
    switch.through(syn(isn))
    segments = stream(6, isn)
    for segment in [*segments, segments[2], segments[5], *stream(8, isn)[6:], segments[0]]:
        switch.through(segment)
    assert switch.seen(FORWARD) == (11, 8, 0)


def test_count_a_gap_and_what_fills_it(switch: ProgramSwitch) -> None:
    """What arrives below the highest end is a retransmission: the one that was overtaken is counted so too."""
    switch.through(syn())
    segments = stream(5)
    for at, first in [(0, 1), (2, 2), (1, 2), (3, 3), (1, 3), (4, 4)]:
        switch.through(segments[at])
        assert switch.seen(FORWARD)[1] == first


def test_count_partial_overlap_is_a_retransmission_that_moves_the_end(switch: ProgramSwitch) -> None:
    switch.through(syn())
    for segment, first in [
        (Segment(1001, bytes(100)), 1),
        (Segment(1051, bytes(100)), 1),
        (Segment(1101, bytes(50)), 1),
        (Segment(1150, bytes(10)), 1),
        (Segment(1160, bytes(10)), 2),
        (Segment(1000, b"x"), 2),
    ]:
        switch.through(segment)
        assert switch.seen(FORWARD)[1] == first, segment.seq


def test_count_a_syn_with_data(switch: ProgramSwitch) -> None:
    """TCP Fast Open (RFC 7413): the first byte is that after the SYN; sent again, it is counted on."""
    fast = Segment(1000, bytes(100), flags=SYN)
    for segment, seen in [
        (fast, (1, 1, 0)),
        (fast, (2, 1, 0)),
        (Segment(1101, bytes(9)), (3, 2, 0)),
        (Segment(1001, bytes(100)), (4, 2, 0)),
    ]:
        switch.through(segment)
        assert switch.seen(FORWARD) == seen


def test_count_a_new_connection_begins_at_1(switch: ProgramSwitch) -> None:
    for isn in (1000, 1000, 77_000):
        switch.through(syn(isn))
        switch.through(Segment(isn + 1))
        switch.through(Segment(isn + 1, DATA))
    assert switch.seen(FORWARD) == (1, 1, 1)


def test_count_a_syn_sent_again_changes_nothing(switch: ProgramSwitch) -> None:
    for segment in (syn(), Segment(1001, DATA), syn(), Segment(1033, DATA), Segment(1001, DATA)):
        switch.through(segment)
    assert switch.seen(FORWARD) == (3, 2, 0)


def test_counters_of_ports_and_flows(switch: ProgramSwitch) -> None:
    names = [("port_in", 1), ("port_out", 2), ("flow_packets", FORWARD)]
    before = [switch.driver.counter(*name) for name in names]
    sizes = [len(segment.build()) for segment in stream(3, size=77)]
    for segment in stream(3, size=77):
        switch.through(segment)
    for name, was in zip(names, before, strict=True):
        now = switch.driver.counter(*name)
        assert (now.packets - was.packets, now.bytes - was.bytes) == (3, sum(sizes)), name


def test_direct_counter_of_a_fate(switch: ProgramSwitch) -> None:
    switch.tables.set_fates("drop data 2-3 of bulk")
    for segment in stream(5):
        switch.through(segment)
    (row,) = testbed_program.fates(fate.parse("drop data 2-3 of bulk"), flows.parse(switch.tables.flows()))
    assert switch.driver.direct(row).packets == 2


def test_ecn_field_of_every_kind_passes(switch: ProgramSwitch) -> None:
    for ecn in range(CE + 1):
        assert switch.outcome(Segment(1001, DATA, ecn=ecn, dscp=46)) == ""


def test_an_id_of_the_last_connection(switch: ProgramSwitch) -> None:
    switch.driver.insert(_wildcard(4096, 1, sport=Ternary(1, 0xFFFF)))
    switch.through(Segment(1001, DATA, sport=1))
    assert switch.seen(4096)[0] == 1
    switch.driver.write_register("data_seen", 4096, 0)


def test_a_table_takes_a_key_once(switch: ProgramSwitch) -> None:
    row = Entry(
        "loss", {"flow": Exact(9)}, "lose", dict.fromkeys(("most", "salt_a", "salt_b", "salt_c", "loss_rank"), 0)
    )
    switch.driver.insert(row)
    with pytest.raises(DriverError, match="loss"):
        switch.driver.insert(row)
    switch.driver.delete(row)
