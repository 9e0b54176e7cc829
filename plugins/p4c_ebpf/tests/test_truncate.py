# SPDX-License-Identifier: Apache-2.0
"""truncate(): a packet leaves with so many bytes at the most, and its port is charged with those."""

from __future__ import annotations

import pytest
from testctl_agent.switch.drivers.driver import Entry, Exact

from plugins.p4c_ebpf.tests.documents import refusal
from plugins.p4c_ebpf.tests.harness import Target
from plugins.p4c_ebpf.tests.packets import IPV4, B, ethernet
from plugins.p4c_ebpf.tests.program_files import committed

PACKET = ethernet(IPV4) + bytes(n % 251 for n in range(286))
CHANGED = PACKET[:12] + b"\x90\x00" + PACKET[14:]


@pytest.mark.root
@pytest.mark.parametrize(
    ("asked", "leaves"), [(14, 14), (60, 60), (99, 99), (100, 100), (101, 100), (300, 100), (2**32 - 1, 100)]
)
def test_the_smallest_number_counts(target: Target, asked: int, leaves: int) -> None:
    one = target("truncate")
    one.driver.insert(Entry("cutting", {"dst": Exact(B)}, "cut_to", {"port": 2, "bytes": asked}))
    assert one.inject(1, PACKET) == [(2, CHANGED[:leaves])]
    assert one.inject(1, PACKET[: leaves - 1 if leaves > 60 else 60]) == [
        (2, CHANGED[: leaves - 1 if leaves > 60 else min(60, leaves)])
    ], "a shorter packet stays as it is"


@pytest.mark.root
def test_all_copies_are_cut(target: Target) -> None:
    one = target("truncate")
    one.driver.multicast(7, (2, 3, 2))
    one.driver.insert(Entry("cutting", {"dst": Exact(B)}, "flood", {"group": 7, "bytes": 70}))
    assert one.inject(1, PACKET) == [(port, PACKET[:70]) for port in (2, 3, 2)]


@pytest.mark.root
def test_the_port_is_charged_with_what_is_sent(target: Target) -> None:
    one = target("truncate")
    one.set_port(2, rate_bps=1_000, buffer_bytes=250)
    one.driver.insert(Entry("cutting", {"dst": Exact(B)}, "cut_to", {"port": 2, "bytes": 80}))
    assert [len(one.inject(1, PACKET)) for _ in range(4)] == [1, 1, 1, 0]


def test_where_it_is_refused() -> None:
    document, clones = committed("truncate"), committed("clones")
    cut = next(p for a in document["actions"] for p in a["primitives"] if p["op"] == "truncate")
    clones["actions"][0]["primitives"].append(cut)
    assert refusal(clones).endswith("truncate() in a program that clones")
    ingress, egress = document["pipelines"][0], document["pipelines"][1]
    ingress["name"], egress["name"] = "egress", "ingress"
    assert refusal(document).endswith("truncate() anywhere but in ingress")
