# SPDX-License-Identifier: Apache-2.0
"""Action profiles and selectors: rows refer to members and groups, and a group's member is chosen by the hash."""

from __future__ import annotations

from collections import Counter

import pytest
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Entry, Exact, Ternary

from plugins.p4c_ebpf.tests.harness import EbpfTarget, Target
from plugins.p4c_ebpf.tests.packets import PAYLOAD, A, crc16, ethernet, ports

pytestmark = pytest.mark.root


@pytest.fixture
def one(target: Target) -> EbpfTarget:
    return target("selector")


def packet(flow: tuple[int, int] = (1, 2), dst: int = 5, kind: int = 0x9999, src: int = A) -> bytes:
    return ethernet(kind, dst=dst, src=src) + ports(*flow) + PAYLOAD


def out(one: EbpfTarget, sent: bytes) -> list[int]:
    return [port for port, _ in one.inject(1, sent)]


def route(dst: int = 5, member: int | None = None, group: int | None = None) -> Entry:
    return Entry("routes", {"dst": Exact(dst)}, "", member=member, group=group)


def backup(kind: int, member: int | None = None, group: int | None = None, priority: int = 1) -> Entry:
    return Entry("backup", {"kind": Ternary(kind, 0xFF00)}, "", {}, priority, member, group)


def send(port: int, path: int = 0) -> dict[str, int]:
    return {"port": port, "path": path}


def flows(count: int) -> list[tuple[int, int]]:
    return [(at * 0x9E37 & 0xFFFF, at * 0x79B9 & 0xFFFF) for at in range(1, count + 1)]


def test_a_group(one: EbpfTarget) -> None:
    """Member h % n of the group's n members, in the order of their numbers; given twice, it has weight 2."""
    driver = one.driver
    for number, port in ((30, 4), (10, 2), (20, 3)):
        driver.member("paths", number, "send", send(port))
    driver.group("paths", 7, [20, 10, 30, 10])
    driver.insert(route(group=7))
    chosen = Counter[int]()
    for flow in flows(200):
        want = [2, 2, 3, 4][crc16(ports(*flow)) % 4]
        assert out(one, packet(flow)) == [want]
        chosen[want] += 1
    assert set(chosen) == {2, 3, 4}
    driver.group("paths", 7, [30])
    assert {port for flow in flows(20) for port in out(one, packet(flow))} == {4}
    driver.member("paths", 30, "send", send(6))
    assert out(one, packet()) == [6]
    driver.member("paths", 30, "discard", {})
    assert out(one, packet()) == []


def test_tables_share_a_profile(one: EbpfTarget) -> None:
    """A hit, whatever it does, keeps the second table from being looked at."""
    driver = one.driver
    driver.member("paths", 1, "send", send(2))
    driver.member("paths", 2, "send", send(3))
    driver.member("paths", 3, "discard", {})
    driver.group("paths", 1, [1, 2])
    driver.insert(route(5, member=3))
    driver.insert(route(6, group=1))
    driver.insert(backup(0x0800, group=1))
    driver.insert(backup(0x0900, member=1))
    for flow in flows(20):
        chosen = [2, 3][crc16(ports(*flow)) % 2]
        assert out(one, packet(flow, dst=5, kind=0x0801)) == []
        assert out(one, packet(flow, dst=6, kind=0x0901)) == [chosen]
        assert out(one, packet(flow, dst=7, kind=0x0802)) == [chosen]
        assert out(one, packet(flow, dst=7, kind=0x0902)) == [2]
    driver.member("paths", 1, "send", send(4))
    assert out(one, packet(dst=7, kind=0x0902)) == [4]


def test_no_row_has_no_action(one: EbpfTarget) -> None:
    driver = one.driver
    driver.member("paths", 1, "send", send(3))
    driver.insert(route(member=1))
    assert out(one, packet()) == [3]
    assert out(one, packet(dst=6)) == []  # egress_spec stays unset, and there is no port 0
    driver.delete(route(member=1))
    assert out(one, packet()) == []


def test_a_default_is_an_action_in_place_of_a_member(one: EbpfTarget) -> None:
    """There is none until it is set; it is no hit."""
    driver = one.driver
    driver.member("paths", 1, "send", send(3))
    driver.insert(backup(0x0900, member=1))
    driver.set_default("routes", "send", send(4))
    assert out(one, packet()) == [4]
    assert out(one, packet(kind=0x0900)) == [3]
    driver.set_default("backup", "send", send(5))
    assert out(one, packet()) == [5]
    driver.insert(route(member=1))
    assert out(one, packet()) == [3]
    driver.clear("routes")
    driver.set_default("backup", "", {})
    driver.set_default("routes", "", {})
    assert out(one, packet()) == []


def test_a_profile_has_no_groups(one: EbpfTarget) -> None:
    """Its action and that of the selector are both run: one sets the source, the other the way."""
    driver = one.driver
    driver.member("paths", 1, "send", send(3, 0x1234))
    driver.insert(route(member=1))
    driver.member("marks", 1, "mark", {"source": 7})
    driver.member("marks", 2, "NoAction", {})
    for kind in (1, 2):
        driver.insert(Entry("marked", {"kind": Exact(kind)}, "", member=kind))
    assert one.inject(1, packet((1, 2), kind=1)) == [(3, packet((1, 0x1234), kind=1, src=7))]
    assert one.inject(1, packet((1, 2), kind=2)) == [(3, packet((1, 0x1234), kind=2))]
    assert one.inject(1, packet((1, 2), kind=3)) == [(3, packet((1, 2), kind=3))]
    with pytest.raises(DriverError, match=r"^action profile ingress.marks: it has no groups: it is no selector$"):
        driver.group("marks", 1, [1])


def test_refusals(one: EbpfTarget) -> None:
    driver = one.driver
    for number in range(4):
        driver.member("paths", number, "send", send(2))
    for said, call in (
        ("full: 4", lambda: driver.member("paths", 9, "send", send(2))),
        ("no member 8", lambda: driver.group("paths", 1, [8])),
        ("group 1: want at most 128 members; got 129", lambda: driver.group("paths", 1, [1] * 129)),
        ("no group 5", lambda: driver.insert(route(group=5))),
        ("no group 5", lambda: driver.group("paths", 5, [])),
        ("no member 8", lambda: driver.member("paths", 8, "", {})),
    ):
        with pytest.raises(DriverError, match=f"^action profile ingress.paths: {said}$"):
            call()
    wanted = "^table ingress.routes: want a member or a group of ingress.paths, and no action$"
    with pytest.raises(DriverError, match=wanted):
        driver.insert(Entry("routes", {"dst": Exact(5)}, "send", send(2)))
    driver.group("paths", 1, [0, 1])
    driver.insert(route(5, group=1))
    driver.insert(route(6, member=2))
    driver.insert(backup(0x0800, member=3))
    for said, call in (
        ("member 1: group 1 refers to it", lambda: driver.member("paths", 1, "", {})),
        ("member 2: a row refers to it", lambda: driver.member("paths", 2, "", {})),
        ("member 3: a row refers to it", lambda: driver.member("paths", 3, "", {})),
        ("group 1: a row refers to it", lambda: driver.group("paths", 1, [])),
    ):
        with pytest.raises(DriverError, match=f"^action profile ingress.paths: {said}$"):
            call()
    driver.clear("routes")
    driver.group("paths", 1, [])
    driver.member("paths", 1, "", {})
    driver.member("paths", 9, "send", send(2))
