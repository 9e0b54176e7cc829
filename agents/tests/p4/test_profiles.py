# SPDX-License-Identifier: Apache-2.0
"""Action profiles and selectors: rows refer to members and groups, and a group's member is chosen by the hash."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Entry, Exact

from agents.tests.p4.conftest import PROGRAMS
from agents.tests.p4.harness import EbpfTarget
from agents.tests.p4.packets import PAYLOAD, ethernet

pytestmark = pytest.mark.root


def crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def forward(name: str, selector: bool) -> dict[str, Any]:
    """l2 whose table `forward` has an action profile; its hash is CRC-16 of the source address."""
    program: dict[str, Any] = json.loads((PROGRAMS / f"{name}.json").read_text())
    pipeline = program["pipelines"][0]
    table = pipeline["tables"][0]
    table |= {"type": "indirect_ws" if selector else "indirect", "action_profile": "ingress.paths"}
    del table["default_entry"]
    profile: dict[str, Any] = {"name": "ingress.paths", "id": 0, "max_size": 4}
    if selector:
        profile["selector"] = {"algo": "crc16", "input": [{"type": "field", "value": ["ethernet", "src"]}]}
    pipeline["action_profiles"] = [profile]
    return program


@pytest.fixture
def target(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EbpfTarget]:
    path = tmp_path / "l2.json"
    path.write_text(json.dumps(forward("l2", getattr(request, "param", True))))
    one = EbpfTarget(path)
    yield one
    one.close()


def packet(src: int, dst: int = 5) -> bytes:
    return ethernet(0x9999, src=src, dst=dst) + PAYLOAD


def out(target: EbpfTarget, one: bytes) -> list[int]:
    return [port for port, _ in target.inject(1, one)]


def test_a_group(target: EbpfTarget) -> None:
    """Member h % n of the group's n members, in the order of their numbers; given twice, it has weight 2."""
    driver = target.driver
    for number, port in ((30, 4), (10, 2), (20, 3)):
        driver.member("paths", number, "send", {"port": port})
    driver.group("paths", 7, [20, 10, 30, 10])
    driver.insert(Entry("forward", {"dst": Exact(5)}, "", group=7))
    chosen = Counter[int]()
    for at in range(200):
        src = at * 0x9E3779B97F4A % 2**48
        want = [2, 2, 3, 4][crc16(src.to_bytes(6, "big")) % 4]
        assert out(target, packet(src)) == [want]
        chosen[want] += 1
    assert set(chosen) == {2, 3, 4}
    driver.group("paths", 7, [30])
    assert {port for src in range(20) for port in out(target, packet(src))} == {4}
    driver.member("paths", 30, "send", {"port": 6})
    assert out(target, packet(1)) == [6]
    driver.member("paths", 30, "discard", {})
    assert out(target, packet(1)) == []


def test_no_row_has_no_action(target: EbpfTarget) -> None:
    target.set_port(1)
    driver = target.driver
    driver.member("paths", 1, "send", {"port": 3})
    driver.insert(Entry("forward", {"dst": Exact(5)}, "", member=1))
    assert out(target, packet(1)) == [3]
    assert out(target, packet(1, dst=6)) == []  # egress_spec stays unset, and there is no port 0
    driver.delete(Entry("forward", {"dst": Exact(5)}, "", member=1))
    assert out(target, packet(1)) == []


@pytest.mark.parametrize("target", [False], indirect=True)
def test_a_profile_has_no_groups(target: EbpfTarget) -> None:
    driver = target.driver
    driver.member("paths", 1, "send", {"port": 3})
    driver.insert(Entry("forward", {"dst": Exact(5)}, "", member=1))
    assert out(target, packet(1)) == [3]
    with pytest.raises(DriverError, match=r"^action profile ingress.paths: it has no groups: it is no selector$"):
        driver.group("paths", 1, [1])


def test_refusals(target: EbpfTarget) -> None:
    driver = target.driver
    for number in range(4):
        driver.member("paths", number, "send", {"port": 2})
    for said, call in (
        ("full: 4", lambda: driver.member("paths", 9, "send", {"port": 2})),
        ("no member 8", lambda: driver.group("paths", 1, [8])),
        ("group 1: want at most 128 members; got 129", lambda: driver.group("paths", 1, [1] * 129)),
        ("no group 5", lambda: driver.insert(Entry("forward", {"dst": Exact(5)}, "", group=5))),
        ("no group 5", lambda: driver.group("paths", 5, [])),
        ("no member 8", lambda: driver.member("paths", 8, "", {})),
    ):
        with pytest.raises(DriverError, match=f"^action profile ingress.paths: {said}$"):
            call()
    wanted = "^table ingress.forward: want a member or a group of ingress.paths, and no action$"
    with pytest.raises(DriverError, match=wanted):
        driver.insert(Entry("forward", {"dst": Exact(5)}, "send", {"port": 2}))
    driver.group("paths", 1, [0, 1])
    driver.insert(Entry("forward", {"dst": Exact(5)}, "", group=1))
    driver.insert(Entry("forward", {"dst": Exact(6)}, "", member=2))
    for said, call in (
        ("member 1: group 1 refers to it", lambda: driver.member("paths", 1, "", {})),
        ("member 2: a row refers to it", lambda: driver.member("paths", 2, "", {})),
        ("group 1: a row refers to it", lambda: driver.group("paths", 1, [])),
    ):
        with pytest.raises(DriverError, match=f"^action profile ingress.paths: {said}$"):
            call()
    driver.clear("forward")
    driver.group("paths", 1, [])
    driver.member("paths", 1, "", {})
    driver.member("paths", 9, "send", {"port": 2})
