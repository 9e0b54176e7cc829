# SPDX-License-Identifier: Apache-2.0
"""Clones of ingress (as parsed) and of egress (as egress left it), with the metadata of their field list; assert()."""

from __future__ import annotations

import pytest
from p4c_ebpf.copies import ROUNDS
from testctl_agent.spec.errors import DriverError

from plugins.p4c_ebpf.tests.documents import refusal
from plugins.p4c_ebpf.tests.harness import Target
from plugins.p4c_ebpf.tests.packets import ethernet
from plugins.p4c_ebpf.tests.program_files import committed

pytestmark = pytest.mark.root

REST = bytes(range(64))
PLAIN, WITH_METADATA = 1, 2
KEPT = pytest.mark.parametrize(("how", "kept"), [(PLAIN, 0), (WITH_METADATA, 77)])
INGRESS, EGRESS, COPY = 1, 2, 5
"""standard_metadata.instance_type"""


def sent(ingress: int = 0, egress: int = 0, group: int = 0, drop: int = 0) -> bytes:
    return bytes([ingress, egress, group, drop, 1, 2, 3, 4, 0, 0, 0, 9, 5, 6, 7, 8]) + REST


def as_parsed(order: bytes, *report: int) -> bytes:
    """Of a clone of ingress: kept, lost, instance_type and egress_rid; its egress added 1."""
    return order[:4] + bytes(report) + bytes([0, 0, 0, 10, 5, 6, 7, 8]) + REST


def changed(order: bytes, *report: int, times: int = 1) -> bytes:
    """Of what has been through ingress, which added 0x100 and removed the last header, and so often egress."""
    return order[:4] + bytes(report) + bytes([0, 0, 1, 9 + times]) + REST


@KEPT
def test_ingress(target: Target, how: int, kept: int) -> None:
    """The clone has the headers as parsed, though ingress changed and removed them; the packet goes on."""
    one, packet = target("clones"), sent(ingress=how)
    itself = (1, changed(packet, 77, 66, 0, 0))
    assert one.inject(1, packet) == [itself]  # no such session
    one.driver.mirror(5, [3, 2], [0, 8])
    clones = [(port, as_parsed(packet, kept, 0, INGRESS, rid)) for port, rid in ((3, 0), (2, 8))]
    assert one.inject(1, packet) == [*clones, itself]
    one.driver.mirror(5, [])
    assert one.inject(1, packet) == [itself]


@KEPT
def test_egress(target: Target, how: int, kept: int) -> None:
    """The clone has the headers that egress left, and an egress of its own, which clones it again, up to a limit."""
    one, packet = target("clones"), sent(egress=how)
    one.driver.mirror(6, [4])
    clones = [(4, changed(packet, kept, 0, EGRESS, 0, times=times)) for times in range(2, 3 + ROUNDS)]
    assert one.inject(1, packet) == [(1, changed(packet, 77, 66, 0, 0)), *clones]
    one.driver.mirror(6, [])
    assert one.inject(1, packet) == [(1, changed(packet, 77, 66, 0, 0))], "and nothing is left to the next packet"


@pytest.mark.parametrize("dropped", [False, True])
def test_egress_of_each_copy(target: Target, dropped: bool) -> None:
    """And a copy that egress drops is cloned all the same."""
    one, packet = target("clones"), sent(egress=WITH_METADATA, group=9, drop=dropped)
    one.driver.mirror(6, [4])
    one.driver.multicast(9, [2, 3], [20, 30])
    copies = [(port, changed(packet, 77, 66, COPY, rid)) for port, rid in ((2, 20), (3, 30))]
    cloned = (4, changed(packet, 77, 0, EGRESS, 0, times=2))
    assert one.inject(1, packet) == ([cloned, cloned] if dropped else [copies[0], cloned, copies[1], cloned])


def test_both_kinds(target: Target) -> None:
    """A clone of ingress is not cloned by its egress; the packet is, and its clones."""
    one, packet = target("clones"), sent(ingress=WITH_METADATA, egress=PLAIN)
    one.driver.mirror(5, [4])
    one.driver.mirror(6, [7])
    assert one.inject(1, packet) == [
        (4, as_parsed(packet, 77, 0, INGRESS, 0)),
        (1, changed(packet, 77, 66, 0, 0)),
        *((7, changed(packet, 0, 0, EGRESS, 0, times=times)) for times in range(2, 3 + ROUNDS)),
    ]
    for session, said in ((-1, "want 0 to 32767; got -1"), (32768, "want 0 to 32767; got 32768")):
        with pytest.raises(DriverError, match=f"^clone session: {said}$"):
            one.driver.mirror(session, [1])
    with pytest.raises(DriverError, match=r"^clone session 5: want ports from 1 to 510; got 0$"):
        one.driver.mirror(5, [0])


def test_a_program_that_does_not_clone(target: Target) -> None:
    with pytest.raises(DriverError, match=r"^clone session 5: the program does not clone$"):
        target("l2").driver.mirror(5, [1])


def test_field_lists_have_metadata() -> None:
    doc = committed("clones")
    [kept] = [one for one in doc["field_lists"] if one["elements"]]
    kept["elements"] = [{"type": "field", "value": ["number", "value"]}]
    assert refusal(doc).endswith(": can't be translated: a field list of anything but metadata")


@pytest.mark.parametrize(("first", "second", "passed"), [(4, 4, [2]), (5, 4, []), (4, 5, []), (255, 255, [])])
def test_a_false_assertion_drops(target: Target, first: int, second: int, passed: list[int]) -> None:
    """assert() in ingress, assume() in egress."""
    head = ethernet(0x9999) + bytes([first, second])
    want = [(1, head + bytes([one]) + REST) for one in passed]
    assert target("asserts").inject(1, head + b"\0" + REST) == want
