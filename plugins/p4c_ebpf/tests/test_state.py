# SPDX-License-Identifier: Apache-2.0
"""What a program keeps between packets, hashes, copies, and what the port model tells egress."""

from __future__ import annotations

import struct
import zlib

import pytest
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Count, Entry, Exact

from plugins.p4c_ebpf.tests.harness import Target
from plugins.p4c_ebpf.tests.packets import IPV4, PAYLOAD, A, B, checksum, crc16, ethernet, ipv4, ports

pytestmark = pytest.mark.root


def test_registers(target: Target) -> None:
    one = target("registers")

    def send(flow: int, length: int) -> tuple[int, int, int]:
        packet = ethernet(IPV4) + ipv4(length=length) + ports(flow, 1) + PAYLOAD
        [(port, got)] = one.inject(1, packet)
        return port, int.from_bytes(got[18:20], "big"), got[20] >> 5

    # average in 1/16: 0 + 1600/4 = 400; 400 - 100 + 400 = 700; 700 - 175 + 400 = 925
    # the signed register: -100 (flag 1), then -200 = 56 (flag stays 0), then -44 (flag 1)
    assert [send(3, 100) for _ in range(3)] == [(1, 25, 1), (1, 43, 0), (2, 57, 1)]
    assert send(3, 100)[0] == 1
    assert one.driver.register("seen")[3] == 1
    assert one.driver.register("average")[3] == 925 - 231 + 400
    assert one.driver.register("wide") == [4 * A]
    assert one.driver.register("ingress.signed") == [0, 112, 0, 0]
    one.driver.write_register("seen", 5, 2)
    assert send(5, 0)[0] == 2
    # index 20 is beyond the end: what is read stays as it was, nothing is written
    assert [send(20, 0)[0] for _ in range(4)] == [1, 1, 1, 1]
    assert one.driver.register("seen") == [0, 0, 0, 1] + [0] * 12
    with pytest.raises(DriverError, match=r"^ingress.seen: want an index from 0 to 15; got 16$"):
        one.driver.write_register("seen", 16, 0)
    with pytest.raises(DriverError, match=r"^register ingress.seen: want at most 32 bits; got 4294967296$"):
        one.driver.write_register("seen", 0, 1 << 32)
    with pytest.raises(DriverError, match=r"^register 'sen': want one of ingress.average"):
        one.driver.register("sen")


def test_hashes(target: Target) -> None:
    one = target("ecmp")
    for path in range(4):
        one.driver.insert(Entry("paths", {"meta.path": Exact(path)}, "to", {"port": 4 + path}))
    seen = set()
    for number in range(16):
        head = ipv4(src=0x0A000001 + number, dst=0xC0A80001, protocol=17, ttl=77, length=300 + number)
        udp = ports(1000 + number, 53)
        [(port, got)] = one.inject(1, ethernet(IPV4) + bytes(24) + head + udp + PAYLOAD)
        crc_32, crc_16, csum, xor, identity, custom, bounded = struct.unpack(">IHHHQIH", got[14:38])
        five = head[12:20] + head[9:10] + udp
        assert crc_32 == zlib.crc32(five)
        assert crc_16 == crc16(five)
        assert csum == checksum(head[12:20] + b"\0" + head[9:10])
        words = struct.unpack(">5H", head[12:20] + head[2:4])
        assert xor == words[0] ^ words[1] ^ words[2] ^ words[3] ^ words[4]
        assert identity == int.from_bytes(head[12:16] + head[8:9], "big")
        assert custom == 5 + zlib.crc32(b"\x45\xab") % 1000
        assert bounded == 100 + crc16(five) % 10
        assert port == 4 + zlib.crc32(five) % 4
        seen.add(port)
    assert seen == {4, 5, 6, 7}


def test_counters(target: Target) -> None:
    one = target("counters")
    row = Entry("forward", {"dst": Exact(B)}, "send", {"port": 2})
    one.driver.insert(row)
    for size in (46, 100):
        one.inject(3, ethernet(IPV4) + bytes(size))
    one.inject(3, ethernet(IPV4, dst=7) + bytes(46))
    one.inject(9, ethernet(IPV4) + bytes(46))  # beyond the end of port_in
    assert one.driver.counter("port_in", 3) == Count(3, 60 + 114 + 60)
    assert one.driver.counter("ingress.port_in", 1) == Count(0, 0)
    assert one.driver.counter("port_out", 2) == Count(3, 60 + 114 + 60)
    assert one.driver.direct(row) == Count(3, 60 + 114 + 60)
    one.driver.delete(row)
    one.driver.insert(row)
    assert one.driver.direct(row) == Count(0, 0)
    with pytest.raises(DriverError, match="such a row is there already"):
        one.driver.insert(row)
    with pytest.raises(DriverError, match=r"^egress.port_out: want an index from 0 to 7; got 8$"):
        one.driver.counter("port_out", 8)


def test_multicast(target: Target) -> None:
    one = target("multicast")
    one.telemetry() if one.compiled.layout.telemetry else None

    def copy(port: int) -> tuple[int, bytes]:
        return port, ethernet(0x5555, dst=2, src=port) + PAYLOAD

    one.driver.multicast(9, [1, 2, 3])
    packet = ethernet(9) + PAYLOAD
    assert one.inject(5, packet) == [copy(1), copy(2), copy(3)]
    assert one.inject(2, packet) == [copy(1), copy(3)]
    assert one.inject(5, ethernet(8) + PAYLOAD) == []  # no such group
    [(port, got)] = one.inject(5, ethernet(0) + PAYLOAD)  # group 0 is none: egress_spec counts
    assert (port, got) == (4, ethernet(0, dst=2, src=4) + PAYLOAD)
    one.driver.multicast(9, [])
    assert one.inject(5, packet) == []
    with pytest.raises(DriverError, match="multicast group 9: there is none"):
        one.driver.multicast(9, [])
    with pytest.raises(DriverError, match="multicast group 9: want ports from 1 to 510; got 511"):
        one.driver.multicast(9, [511])
    with pytest.raises(DriverError, match="multicast group 9: want at most 16 ports; got 17"):
        one.driver.multicast(9, range(1, 18))


@pytest.mark.parametrize("delay_ns", [0, 60 * 10**9])
def test_queue(target: Target, delay_ns: int) -> None:
    """The wait ends when a packet begins to be sent: neither its own time on the link counts, nor the link's delay."""
    one = target("queue")
    one.set_port(2, rate_bps=1000, delay_ns=delay_ns, buffer_bytes=4000, framing_bytes=24)
    packet = ethernet(0x9999) + bytes(16) + bytes(946)  # 976 bytes; 1000 with framing: eight seconds
    seen = []
    for _ in range(5):
        for _, got in one.inject(1, packet):
            seen.append((*struct.unpack(">4I", got[14:30]), got[12:14].hex()))
    # bits go out as the test runs: at most a byte in 8 ms
    assert [one_ for one_ in seen if one_[3] != 976] == []
    assert [round(depth, -2) for depth, *_ in seen] == [0, 1000, 2000, 3000]
    assert [depth == after for depth, after, *_ in seen] == [True] * 4
    assert [round(wait / 8e6) for _, _, wait, _, _ in seen] == [0, 1, 2, 3]
    assert [kind for *_, kind in seen][:3] == ["9999"] * 3
