# SPDX-License-Identifier: Apache-2.0
"""Headers are added, removed, looked ahead at and stacked; what lies behind them stays as it is."""

from __future__ import annotations

import itertools
import struct

import pytest
from testctl_agent.switch.drivers.driver import Entry, Exact

from plugins.p4c_ebpf.tests.documents import Make, element, field
from plugins.p4c_ebpf.tests.harness import EbpfTarget, Target
from plugins.p4c_ebpf.tests.packets import IPV4, MPLS, PAYLOAD, VLAN, A, B, ethernet, ipv4
from plugins.p4c_ebpf.tests.program_files import committed

pytestmark = pytest.mark.root

TUNNEL = 0x1212


def vlan(number: int, kind: int, priority: int = 0) -> bytes:
    return struct.pack(">2H", priority << 13 | number, kind)


def vlan_switch(target: Target) -> EbpfTarget:
    one = target("vlan")
    one.driver.insert(Entry("forward", {"dst": Exact(B)}, "send", {"port": 2}))
    one.driver.insert(Entry("forward", {"dst": Exact(A)}, "send", {"port": 3}))
    one.driver.insert(Entry("forward", {"dst": Exact(2**48 - 1)}, "flood", {"group": 1}))
    one.driver.insert(Entry("ports", {"egress_port": Exact(2)}, "tag", {"id": 77}))
    one.driver.insert(Entry("ports", {"egress_port": Exact(3)}, "untag"))
    one.driver.multicast(1, [3, 2, 4, 3, 2])
    return one


@pytest.mark.parametrize("kind", [IPV4, 0x0806, 0x88B5])
@pytest.mark.parametrize("size", [0, 1, 17, 46, 1500])
def test_vlan(target: Target, kind: int, size: int) -> None:
    if kind == IPV4 and size < 20:
        pytest.skip("BPF_PROG_TEST_RUN refuses IPv4 that short")
    one = vlan_switch(target)
    rest = bytes(at % 251 for at in range(size))
    plain, tagged = ethernet(kind) + rest, ethernet(VLAN) + vlan(5, kind, priority=6) + rest
    assert one.inject(1, plain) == [(2, ethernet(VLAN) + vlan(77, kind) + rest)]
    assert one.inject(1, tagged) == [(2, ethernet(VLAN) + vlan(77, kind, 6) + rest)]
    back = ethernet(VLAN, dst=A) + vlan(5, kind) + rest
    assert one.inject(1, back) == [(3, ethernet(kind, dst=A) + rest)]
    assert one.inject(1, ethernet(kind, dst=A) + rest) == [(3, ethernet(kind, dst=A) + rest)]


@pytest.mark.parametrize("size", [4, 46, 999])
def test_vlan_copies(target: Target, size: int) -> None:
    one = vlan_switch(target)
    rest, all_ = bytes(at % 251 for at in range(size)), 2**48 - 1
    plain = ethernet(0x88B5, dst=all_) + rest
    tagged = ethernet(VLAN, dst=all_) + vlan(9, 0x88B5) + rest
    want = {2: ethernet(VLAN, dst=all_) + vlan(77, 0x88B5) + rest, 3: plain}
    assert one.inject(1, plain) == [(3, want[3]), (2, want[2]), (4, plain), (3, want[3]), (2, want[2])]
    assert one.inject(1, tagged) == [(3, want[3]), (2, want[2]), (4, tagged), (3, want[3]), (2, want[2])]


@pytest.mark.parametrize("size", [4, 6, 28])
def test_copies_tagged_and_untagged_in_turn(target: Target, size: int) -> None:
    """However often a short frame was tagged before, it can be untagged."""
    one = vlan_switch(target)
    one.driver.multicast(1, [2, 3] * 8)
    rest, all_ = bytes(at % 251 for at in range(size)), 2**48 - 1
    plain, tagged = ethernet(0x0806, dst=all_) + rest, ethernet(VLAN, dst=all_) + vlan(77, 0x0806) + rest
    assert one.inject(1, plain) == [(2, tagged), (3, plain)] * 8


def test_a_copy_that_can_t_be_cut_leaves_the_next_ones_whole(target: Target) -> None:
    """A frame of nothing but its header, 46 bytes below Ethernet's least, can't be untagged once it was tagged."""
    one = vlan_switch(target)
    one.driver.multicast(1, [2, 3, 2])
    bare = ethernet(0x0800, dst=2**48 - 1)
    tagged = ethernet(VLAN, dst=2**48 - 1) + vlan(77, 0x0800)
    assert [sent for sent in one.inject(1, bare) if sent[0] == 2] == [(2, tagged), (2, tagged)]


def tunnel(inside: int, number: int, spare: int = 0) -> bytes:
    return struct.pack(">2H", inside, number) + spare.to_bytes(3, "big")


def test_tunnel(target: Target) -> None:
    one = target("tunnel")
    one.driver.insert(Entry("entrances", {"hdr.ipv4.dst": Exact(0x0A000002)}, "enter", {"id": 5, "port": 2}))
    one.driver.insert(Entry("exits", {"hdr.tunnel.id": Exact(5)}, "leave", {"port": 3}))
    one.driver.insert(Entry("exits", {"hdr.tunnel.id": Exact(6)}, "pass", {"port": 4}))
    inner = ethernet(IPV4) + ipv4() + PAYLOAD
    outer = ethernet(TUNNEL) + tunnel(IPV4, 5) + ipv4() + PAYLOAD
    assert one.inject(1, inner) == [(2, outer)]
    assert one.inject(2, outer) == [(3, inner)]
    other = ethernet(TUNNEL) + tunnel(0x9999, 6, 0xABCDEF) + PAYLOAD
    assert one.inject(2, other) == [(4, other)]
    short = ethernet(TUNNEL) + tunnel(0x9999, 5, 0xABCDEF) + b"x"
    assert one.inject(2, short) == [(3, ethernet(0x9999) + b"x")]
    assert one.inject(2, ethernet(0x9999) + PAYLOAD) == [(3, PAYLOAD)]  # the program takes Ethernet off


def test_lookahead(target: Target) -> None:
    one = target("lookahead")

    def out(rest: bytes) -> tuple[int, bytes]:
        [(port, packet)] = one.inject(1, ethernet(0x9999) + rest)
        return port, packet

    def head(first: bytes) -> bytes:
        return ethernet(0x9999, dst=B & ~15 | first[0] >> 4, src=int.from_bytes(first[:2], "big"))

    small = bytes([1, 0xAA]) + PAYLOAD
    assert out(small) == (1, head(small) + small)
    large = bytes([2, 6, 0, 0, 1, 0]) + PAYLOAD
    assert out(large) == (1, head(large) + large)
    nested = bytes([2, 6, 0, 0, 0, 15, 1, 2]) + PAYLOAD
    assert out(nested) == (1, head(nested) + nested)
    wrong = bytes([2, 7, 0, 0, 0, 15, 1, 2]) + PAYLOAD
    assert out(wrong) == (3, head(wrong) + wrong)
    skipped = bytes([0xF3, 9, 1, 2]) + PAYLOAD
    assert out(skipped) == (1, head(skipped) + skipped[2:])  # what is skipped is gone
    assert out(bytes([2, 6, 0])) == (2, head(bytes([2, 6])) + bytes([2, 6, 0]))
    assert out(b"\x01") == (2, ethernet(0x9999, dst=B & ~15, src=0) + b"\x01")
    other = bytes([7, 7])
    assert out(other) == (1, head(other) + other)


def label(number: int, bottom: int, ttl: int = 9, traffic_class: int = 0) -> bytes:
    return struct.pack(">I", number << 12 | traffic_class << 9 | bottom << 8 | ttl)


def test_mpls(target: Target) -> None:
    one = target("mpls")
    for number, action, params in (
        (100, "swap_label", {"label": 200, "port": 2}),
        (101, "pop", {"port": 3}),
        (102, "push", {"label": 300, "port": 4}),
    ):
        keys = {"hdr.labels[0].label": Exact(number), "hdr.labels[0].$valid$": Exact(1)}
        one.driver.insert(Entry("labels", keys, action, params))
    keys = {"hdr.labels[0].label": Exact(0), "hdr.labels[0].$valid$": Exact(0)}
    one.driver.insert(Entry("labels", keys, "push", {"label": 7, "port": 5}))
    head, rest = ethernet(MPLS), ipv4() + PAYLOAD
    assert one.inject(1, head + label(100, 1) + rest) == [(2, head + label(200, 1, 8) + rest)]
    assert one.inject(1, head + label(101, 1) + rest) == [(3, ethernet(IPV4) + rest)]
    two = label(101, 0) + label(5, 0) + label(6, 1, 3, 7)
    assert one.inject(1, head + two + rest) == [(3, head + two[4:] + rest)]
    assert one.inject(1, head + label(102, 1) + rest) == [(4, head + label(300, 0, 64) + label(102, 1) + rest)]
    full = label(102, 0) + label(5, 0) + label(6, 1)
    assert one.inject(1, head + full + rest) == [(4, head + label(300, 0, 64) + full[:8] + rest)]  # the last falls off
    assert one.inject(1, ethernet(IPV4) + rest) == [(5, head + label(7, 1, 64) + rest)]
    assert one.inject(1, head + label(101, 0) * 4 + rest) == []


def stacked(traffic_class: int, labels: list[int], ttls: list[int]) -> bytes:
    """A packet with these labels, the first of this class."""
    last = len(labels) - 1
    parts = [label(labels[at], at == last, ttls[at], 0 if at else traffic_class) for at in range(last + 1)]
    return ethernet(MPLS) + b"".join(parts) + ipv4() + PAYLOAD


def test_a_label_at_an_index_that_the_packet_decides(made: Make) -> None:
    """swap_label as `labels[labels[0].class].label = label; labels[0].ttl = labels[labels[0].class].ttl`."""
    program, which = committed("mpls"), field("labels[0]", "class")
    (swap,) = [action for action in program["actions"] if action["name"] == "ingress.swap_label"]
    assert [one["op"] for one in swap["primitives"][:2]] == ["assign", "assign"]
    swap["primitives"][0]["parameters"][0] = element("labels", which, 0)
    swap["primitives"][1]["parameters"][1] = element("labels", which, 3)
    one = made(program)
    keys = {"hdr.labels[0].label": Exact(7), "hdr.labels[0].$valid$": Exact(1)}
    one.driver.insert(Entry("labels", keys, "swap_label", {"label": 99, "port": 2}))
    for index, count in itertools.product(range(8), (2, 3)):
        labels, ttls = [7, 8, 9][:count], [10, 20, 30][:count]
        before = stacked(index, labels, ttls)
        if index < count:
            labels[index] = 99
        ttls[0] = ttls[index] if index < count else 0
        assert one.inject(1, before) == [(2, stacked(index, labels, ttls))], (index, count)
