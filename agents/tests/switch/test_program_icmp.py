# SPDX-License-Identifier: Apache-2.0
"""What the eBPF switch answers to packets that are larger than the next link takes (p4c_ebpf/runtime/icmp.h)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest
from testctl_agent.switch.ebpf_links import Link, LinkMaps
from testctl_agent.switch.ebpf_ports import PortMap

from agents.tests.switch.packets import UDP, Segment, checksum, mac, pseudo
from agents.tests.switch.program import ProgramSwitch

pytestmark = pytest.mark.root
ETHERNET, ICMP, ICMP6 = 14, 1, 58
CS6 = 0xC0


@pytest.fixture
def largest(switch: ProgramSwitch) -> Iterator[Callable[[str | int], ProgramSwitch]]:
    """The switch whose port to host 2 takes packets up to a size."""
    if not hasattr(switch.target, "object"):
        pytest.skip("this target has no links that change")
    maps = switch.target.object.map
    links = LinkMaps(*(maps(name).fd for name in ("links", "traces", "link_origin")))
    ports = PortMap(maps("ports").fd)

    def _set(value: str | int) -> ProgramSwitch:
        links.write(2, Link(largest=value))
        ports.change(2, changes=1)
        switch.target.telemetry()
        return switch

    yield _set
    links.write(2, None)
    ports.change(2, changes=0)


def _segment(ip_bytes: int, df: bool = True, **other: object) -> bytes:
    """A data segment of so many bytes from the IP header on."""
    head = 60 if other.get("v6") else 40
    packet = bytearray(Segment(1001, b"x" * (ip_bytes - head), **other).build())  # type: ignore[arg-type]
    if packet[-ip_bytes] >> 4 == 4 and df:
        packet[-ip_bytes + 6] |= 0x40
        packet[-ip_bytes + 10 : -ip_bytes + 12] = bytes(2)
        packet[-ip_bytes + 10 : -ip_bytes + 12] = struct.pack("!H", checksum(packet[-ip_bytes : 20 - ip_bytes]))
    return bytes(packet)


@pytest.mark.parametrize("vlan", [None, 5])
@pytest.mark.parametrize("size", [1401, 1500, 3000])
def test_the_answer_of_ipv4(largest: Callable[[str | int], ProgramSwitch], size: int, vlan: int | None) -> None:
    switch = largest("1400B icmp")
    sent = _segment(size, vlan=vlan)
    ((port, got),) = switch.target.inject(1, sent)
    assert port == 1
    at = ETHERNET + (4 if vlan else 0)
    assert got[:12] == mac(1) + mac(2)
    assert got[12:at] == sent[12:at]
    ip, icmp = got[at : at + 20], got[at + 20 :]
    assert (ip[0], ip[1], ip[8], ip[9]) == (0x45, CS6, 64, ICMP)
    assert struct.unpack_from("!H", ip, 2)[0] == len(ip) + len(icmp)
    assert (ip[12:16], ip[16:20]) == (bytes([10, 0, 0, 2]), bytes([10, 0, 0, 1]))
    assert checksum(ip) == checksum(icmp) == 0
    assert (icmp[0], icmp[1], icmp[4:6], struct.unpack_from("!H", icmp, 6)[0]) == (3, 4, bytes(2), 1400)
    assert icmp[8:] == sent[at : at + 48]


@pytest.mark.parametrize("vlan", [None, 5])
@pytest.mark.parametrize("size", [1401, 1500, 3000])
def test_the_answer_of_ipv6(largest: Callable[[str | int], ProgramSwitch], size: int, vlan: int | None) -> None:
    switch = largest("1400B icmp")
    sent = _segment(size, v6=True, vlan=vlan)
    ((port, got),) = switch.target.inject(1, sent)
    assert port == 1
    at = ETHERNET + (4 if vlan else 0)
    assert got[:12] == mac(1) + mac(2)
    ip, icmp = got[at : at + 40], got[at + 40 :]
    assert (ip[0] >> 4, ip[6], ip[7], struct.unpack_from("!H", ip, 4)[0]) == (6, ICMP6, 64, len(icmp))
    assert (ip[8:24], ip[24:40]) == (sent[at + 24 : at + 40], sent[at + 8 : at + 24])
    assert checksum(pseudo(ip[8:24], ip[24:40], ICMP6, len(icmp)) + icmp) == 0
    assert (icmp[0], icmp[1], struct.unpack_from("!I", icmp, 4)[0]) == (2, 0, 1400)
    assert icmp[8:] == sent[at : at + 60]


def test_checksums_of_answers_at_the_ends_of_their_range(largest: Callable[[str | int], ProgramSwitch]) -> None:
    switch = largest("1400B icmp")
    for identification in range(0, 65536, 251):
        sent = _segment(1500, identification=identification)
        ((_, got),) = switch.target.inject(1, sent)
        assert checksum(got[34:]) == 0, identification


@pytest.mark.parametrize(
    ("value", "packet", "left"),
    [
        ("1400B icmp", _segment(1400), 2),
        ("1400B icmp", _segment(1401, df=False), 0),
        ("1400B icmp", _segment(1500, more_fragments=True), 0),
        ("1400B icmp", _segment(1500, fragment_offset=5), 0),
        (1400, _segment(1401), 0),
        (1400, _segment(1401, v6=True), 0),
        ("none", _segment(3000), 2),
        ("1400B icmp", Segment(payload=bytes(1500), protocol=ICMP).build(), 0),
        ("1400B icmp", Segment(payload=bytes(1500), protocol=UDP, v6=True).build(), 1),
    ],
)
def test_who_gets_an_answer(
    largest: Callable[[str | int], ProgramSwitch], value: str | int, packet: bytes, left: int
) -> None:
    """left: the port at which something leaves, 0: nothing does."""
    switch = largest(value)
    assert [port for port, _ in switch.target.inject(1, packet)] == ([left] if left else [])


def test_a_packet_that_is_too_large_is_told_as_lost_by_the_link(largest: Callable[[str | int], ProgramSwitch]) -> None:
    switch = largest("1400B icmp")
    switch.target.inject(1, _segment(1500))
    lost, answer = switch.target.telemetry()
    assert (lost["verdict"], lost["egress_port"], lost["flow"], lost["ordinal"]) == (4, 2, 1, 1)
    assert (answer["verdict"], answer["egress_port"], answer["flow"], answer["wire_bytes"]) == (0, 1, 0, 90)
