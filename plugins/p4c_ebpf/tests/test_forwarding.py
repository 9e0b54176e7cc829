# SPDX-License-Identifier: Apache-2.0
"""Tables of every kind find the right row: packets in, expected packets out."""

from __future__ import annotations

import pytest
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Count, Entry, Exact, Lpm, Range, Ternary

from plugins.p4c_ebpf.tests.harness import Target
from plugins.p4c_ebpf.tests.packets import IPV4, IPV6, PAYLOAD, A, B, ethernet, ipv4, ipv6, ports

pytestmark = pytest.mark.root


def test_l2(target: Target) -> None:
    one = target("l2")
    one.telemetry()
    packet = ethernet(IPV4) + PAYLOAD
    assert one.inject(1, packet) == []
    one.driver.insert(Entry("forward", {"dst": Exact(B)}, "send", {"port": 2}))
    assert one.inject(1, packet) == [(2, packet)]
    assert one.inject(1, ethernet(IPV4, dst=B + 1) + PAYLOAD) == []
    one.driver.set_default("forward", "send", {"port": 5})
    assert one.inject(1, ethernet(IPV4, dst=B + 1) + PAYLOAD)[0][0] == 5
    one.driver.set_default("forward", "", {})
    one.driver.delete(Entry("forward", {"dst": Exact(B)}, "send", {"port": 2}))
    assert one.inject(1, packet) == []
    records = one.telemetry()
    assert [(r["verdict"], r["egress_port"], r["first"], r["second"]) for r in records] == [
        (1, 0, 0, 7), (0, 2, 2, 7), (1, 0, 0, 7), (0, 5, 5, 7), (1, 0, 0, 7),
    ]  # fmt: skip
    assert {(r["wire_bytes"], r["ingress_port"], r["queue_bytes"]) for r in records} == {(60, 1, 0)}


def test_no_such_port(target: Target) -> None:
    one = target("l2")
    one.telemetry()
    one.driver.insert(Entry("forward", {"dst": Exact(B)}, "send", {"port": 300}))
    assert one.inject(1, ethernet(IPV4) + PAYLOAD) == []
    assert [r["verdict"] for r in one.telemetry()] == [3]
    assert one.inject(0, ethernet(IPV4) + PAYLOAD) == []  # no port of the switch
    assert one.telemetry() == []


def test_l2_capacity(target: Target) -> None:
    one = target("l2")
    for number in range(16):
        one.driver.insert(Entry("forward", {"dst": Exact(number)}, "send", {"port": 1 + number}))
    with pytest.raises(DriverError, match=r"^table ingress.forward: full: 16 rows$"):
        one.driver.insert(Entry("forward", {"dst": Exact(16)}, "send", {"port": 1}))
    for number in range(16):
        assert one.inject(1, ethernet(IPV4, dst=number) + PAYLOAD)[0][0] == 1 + number
    one.driver.clear("forward")
    assert one.inject(1, ethernet(IPV4, dst=3) + PAYLOAD) == []


def test_router(target: Target) -> None:
    one = target("router")
    rows = {}
    for length, port in ((0, 1), (8, 2), (24, 3), (32, 4)):
        rows[length] = Entry("routes", {"hdr.ipv4.dst": Lpm(0x0A010203, length)}, "to", {"mac": port, "port": port})
        one.driver.insert(rows[length])
    for dst, port in ((0x0A010203, 4), (0x0A010204, 3), (0x0A020203, 2), (0x0B000000, 1)):
        packet = ethernet(IPV4) + ipv4(dst=dst) + ports(7, 8) + PAYLOAD
        want = ethernet(IPV4, dst=port, src=B) + ipv4(dst=dst, ttl=63) + ports(7, 8) + PAYLOAD
        assert one.inject(1, packet) == [(port, want)]
    size = len(ethernet(IPV4) + ipv4() + ports(7, 8) + PAYLOAD)
    assert one.driver.direct(rows[24]) == Count(1, size)
    one.driver.delete(rows[32])
    assert one.inject(1, ethernet(IPV4) + ipv4(dst=0x0A010203) + PAYLOAD)[0][0] == 3
    assert one.driver.direct(rows[24]).packets == 2


def test_router_drops(target: Target) -> None:
    one = target("router")
    one.driver.insert(Entry("routes", {}, "to", {"mac": 1, "port": 1}))
    wrong = bytearray(ethernet(IPV4) + ipv4() + PAYLOAD)
    wrong[14 + 10] ^= 1
    assert one.inject(1, bytes(wrong)) == []
    assert one.inject(1, ethernet(IPV4) + ipv4(ttl=1) + PAYLOAD) == []
    assert one.inject(1, ethernet(IPV6) + ipv4() + PAYLOAD) == []
    assert len(one.inject(1, ethernet(IPV4) + ipv4() + PAYLOAD)) == 1


def test_acl_priorities(target: Target) -> None:
    one = target("acl")
    packet = ethernet(IPV4) + ipv4() + ports(1, 80) + PAYLOAD
    assert one.inject(1, packet) == []
    low = Entry(
        "rules",
        {"hdr.ipv4.src": Ternary(0x0A000000, 0xFF000000), "hdr.ipv4.$valid$": Exact(1)},
        "allow",
        {},
        priority=1,
    )
    one.driver.insert(low)
    assert one.inject(1, packet) == [(3, packet)]
    exact = {"hdr.ipv4.src": Ternary(0x0A000001, 0xFFFFFFFF), "hdr.ipv4.$valid$": Exact(1)}
    one.driver.insert(Entry("rules", exact, "deny", {}, priority=10))
    assert one.inject(1, packet) == []
    one.driver.insert(Entry("rules", exact, "allow", {}, priority=11))  # the same key, another priority
    assert one.inject(1, packet) == [(3, packet)]
    one.driver.delete(Entry("rules", exact, "allow", {}, priority=11))
    assert one.inject(1, packet) == []
    protocol = {"hdr.ipv4.protocol": Ternary(17, 0xFF), "hdr.ipv4.$valid$": Exact(1)}
    one.driver.insert(Entry("rules", protocol, "allow", {}, priority=9))
    assert one.inject(1, packet) == []
    one.driver.clear("rules")
    one.driver.insert(Entry("rules", {"hdr.ipv4.$valid$": Exact(0)}, "allow", {}, priority=1))
    assert one.inject(1, ethernet(IPV6) + PAYLOAD)[0][0] == 2
    assert one.inject(1, packet) == []


def test_constant_rows(target: Target) -> None:
    one = target("acl")
    one.driver.insert(Entry("rules", {"hdr.ipv4.$valid$": Exact(1)}, "allow", {}, priority=1))
    for port, out in ((80, 3), (8080, 4), (8095, 4), (8096, 5), (0, 5)):
        assert one.inject(1, ethernet(IPV4) + ipv4() + ports(1, port) + PAYLOAD)[0][0] == out
    with pytest.raises(DriverError, match=r"table ingress.classes: its rows are constants of the program"):
        one.driver.clear("classes")
    with pytest.raises(DriverError, match="its default action is a constant of the program"):
        one.driver.set_default("classes", "classify", {"class": 1})


def test_ranges(target: Target) -> None:
    one = target("ranges")

    def out(protocol: int, src: int, dst: int) -> int:
        return one.inject(1, ethernet(IPV4) + ipv4(protocol=protocol) + ports(src, dst) + PAYLOAD)[0][0]

    assert out(6, 1, 80) == 1
    for protocol, low, high, port, priority in (
        (6, 80, 90, 2, 1), (6, 85, 85, 3, 2), (17, 0, 65535, 4, 1), (17, 1000, 1000, 5, 9),
    ):  # fmt: skip
        keys = {"hdr.ipv4.protocol": Exact(protocol), "hdr.ports.dst": Range(low, high)}
        one.driver.insert(Entry("by_protocol", keys, "send", {"port": port}, priority))
    for protocol, dst, port in (
        (6, 79, 1), (6, 80, 2), (6, 84, 2), (6, 85, 3), (6, 90, 2), (6, 91, 1), (17, 0, 4), (17, 65535, 4),
        (17, 1000, 5),
    ):  # fmt: skip
        assert out(protocol, 5, dst) == port
    keys = {"hdr.ipv4.protocol": Exact(6), "hdr.ports.src": Range(7, 9), "hdr.ports.dst": Range(0, 10)}
    one.driver.insert(Entry("by_protocol", keys, "send", {"port": 8}, 1))
    assert [out(6, src, 10) for src in (6, 7, 9, 10)] == [1, 8, 8, 1]


def test_ranges_without_exact_fields(target: Target) -> None:
    one = target("ranges")
    one.driver.insert(Entry("by_protocol", {"hdr.ipv4.protocol": Exact(17)}, "send", {"port": 2}, 1))
    one.driver.insert(Entry("by_length", {"hdr.ipv4.length": Range(100, 200)}, "mark", {"dscp": 5}, 1))
    keys = {"hdr.ipv4.length": Range(150, 160), "hdr.ipv4.src": Ternary(1, 1)}
    one.driver.insert(Entry("by_length", keys, "mark", {"dscp": 9}, 2))
    for length, src, dscp in ((99, 1, 0), (100, 1, 5), (150, 1, 9), (150, 2, 5), (200, 1, 5), (201, 1, 0)):
        [(_, got)] = one.inject(1, ethernet(IPV4) + ipv4(length=length, src=src) + ports(1, 2) + PAYLOAD)
        assert got[15] >> 2 == dscp
    # a miss of the first table goes another way
    [(port, got)] = one.inject(1, ethernet(IPV4) + ipv4(protocol=6, length=150) + ports(1, 2) + PAYLOAD)
    assert (port, got[34:38]) == (1, ports(1, 9))


HERE, THERE = 0x20010DB8 << 96 | 1, 0x20010DB8 << 96 | 1 << 64 | 2


def test_ipv6(target: Target) -> None:
    one = target("ipv6")
    for length, port in ((32, 1), (64, 2), (128, 3)):
        one.driver.insert(Entry("routes", {"hdr.ipv6.dst": Lpm(THERE, length)}, "to", {"port": port}))
    head = ethernet(IPV6)
    for dst, port in ((THERE, 3), (THERE + 1, 2), (THERE + (1 << 64), 1)):
        half = (dst >> 32) & (1 << 48) - 1
        want = ethernet(IPV6, src=half) + ipv6(HERE, dst) + PAYLOAD
        assert one.inject(1, head + ipv6(HERE, dst) + PAYLOAD) == [(port, want)]
    assert one.inject(1, head + ipv6(HERE, 1 << 127) + PAYLOAD) == []
    [(port, got)] = one.inject(1, head + ipv6(THERE, THERE) + PAYLOAD)
    assert port == 9
    [(port, got)] = one.inject(1, head + ipv6(THERE + 5, THERE) + PAYLOAD)  # swapped: the greater one comes last
    assert (port, got[14:54]) == (3, ipv6(THERE, THERE + 5))


def test_ipv6_rewrite(target: Target) -> None:
    one = target("ipv6")
    one.driver.insert(Entry("routes", {"hdr.ipv6.dst": Lpm(THERE, 128)}, "to", {"port": 3}))
    keys = {"hdr.ipv6.src": Exact(HERE), "hdr.ipv6.next": Exact(59)}
    one.driver.insert(Entry("hosts", keys, "rewrite", {"address": THERE}))
    mask = (1 << 128) - (1 << 96)
    labels = {"hdr.ipv6.src": Ternary(HERE, mask), "hdr.ipv6.label": Ternary(0x80000, 0x80000)}
    one.driver.insert(Entry("classes", labels, "mark", {"class": 0xA5}, 1))
    [(port, got)] = one.inject(1, ethernet(IPV6) + ipv6(HERE, 7 << 120, label=0x80001) + PAYLOAD)
    assert (port, got[14:54]) == (3, ipv6(HERE, THERE, 0xA5, 0x80001))
    [(port, got)] = one.inject(1, ethernet(IPV6) + ipv6(HERE, 7 << 120, label=1) + PAYLOAD)
    assert got[14:54] == ipv6(HERE, THERE, 0, 1)
    assert one.inject(1, ethernet(IPV6) + ipv6(HERE, 7 << 120, following=6) + PAYLOAD) == []
    assert A != B
