# SPDX-License-Identifier: Apache-2.0
"""The driver's contract on a real BMv2, with the testbed's program."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Count, Entry, Exact, Key, Range, Ternary
from testctl_agent.switch.testbed_tables import built
from testctl_bmv2 import simple_switch

from plugins.p4c_ebpf.tests.bmv2_target import Bmv2Target

pytestmark = pytest.mark.skipif(bool(simple_switch.unavailable()), reason=simple_switch.unavailable())

HERE, THERE = 0x020000000001, 0x020000000002
PACKET = THERE.to_bytes(6, "big") + HERE.to_bytes(6, "big") + b"\x88\xb5" + bytes(50)


@pytest.fixture(scope="module")
def running() -> Iterator[Bmv2Target]:
    program, info = built()
    with Bmv2Target(program, info) as target:
        yield target


@pytest.fixture
def target(running: Bmv2Target) -> Bmv2Target:
    """With empty tables."""
    for table in running.driver.info.tables.values():
        if not table.constant and table.keys:
            running.driver.clear(table.name)
    return running


def station(mac: int, port: int) -> Entry:
    return Entry("forward", {"destination": Exact(mac)}, "send", {"port": port})


def fate(low: int, high: int, priority: int = 1) -> Entry:
    keys: dict[str, Key] = {"flow": Exact(1), "kind": Exact(1), "ordinal": Range(low, high)}
    return Entry("fate", keys, "drop", {"rank": 0}, priority)


def test_rows_come_and_go(target: Bmv2Target) -> None:
    assert target.inject(1, PACKET) == []
    target.driver.insert(station(THERE, 2))
    assert target.inject(1, PACKET) == [(2, PACKET)]
    with pytest.raises(DriverError, match=r"table TestbedIngress.forwarding.forward, insert .*: ALREADY_EXISTS"):
        target.driver.insert(station(THERE, 3))
    target.driver.delete(station(THERE, 2))
    assert target.inject(1, PACKET) == []
    with pytest.raises(DriverError, match=r"table TestbedIngress.forwarding.forward, delete .*: NOT_FOUND"):
        target.driver.delete(station(THERE, 2))
    for mac in range(10):
        target.driver.insert(station(mac, 3))
    target.driver.clear("forward")
    target.driver.insert(station(3, 3))


def test_a_full_table_is_said(target: Bmv2Target) -> None:
    size = target.driver.info.table("classify4").size
    for number in range(size):
        target.driver.insert(Entry("classify4", {"src": Ternary(number, 0xFFFF)}, "set_flow", {"flow": 1}, number))
    with pytest.raises(DriverError, match=r"classify4, insert .*: the table is full: it has 256 rows"):
        target.driver.insert(Entry("classify4", {"src": Ternary(size, 0xFFFF)}, "set_flow", {"flow": 1}, size))


def test_a_default_action_and_the_way_back(target: Bmv2Target) -> None:
    target.driver.set_default("forward", "send", {"port": 4})
    assert target.inject(1, PACKET) == [(4, PACKET)]
    target.driver.set_default("forward", "", {})
    assert target.inject(1, PACKET) == []


def test_groups_are_set_changed_and_taken_away(target: Bmv2Target) -> None:
    target.driver.insert(Entry("forward", {"destination": Exact(THERE)}, "flood", {"group": 6}))
    for ports in ((2, 3, 4), (3,), ()):
        target.driver.multicast(7, ports)
        assert target.inject(1, PACKET) == [(port, PACKET) for port in ports]
    target.driver.multicast(7, ())


def test_counters(target: Bmv2Target) -> None:
    before = target.driver.counter("port_in", 1)
    target.inject(1, PACKET)
    after = target.driver.counter("port_in", 1)
    assert Count(after.packets - before.packets, after.bytes - before.bytes) == Count(1, len(PACKET))
    with pytest.raises(DriverError, match=r"want an index below \d+; got 5120"):
        target.driver.counter("port_in", 5120)


def test_direct_counters(target: Bmv2Target) -> None:
    target.driver.insert(fate(1, 4))
    target.driver.insert(fate(6, 8, 2))
    assert target.driver.direct(fate(1, 4)) == Count(0, 0)
    with pytest.raises(DriverError):
        target.driver.direct(fate(1, 5))
    with pytest.raises(DriverError, match="forward: want a direct counter; the program gives it none"):
        target.driver.direct(station(THERE, 2))


def test_registers_by_thrift_if_there_is_one(target: Bmv2Target) -> None:
    if target.driver.registers is None:
        with pytest.raises(DriverError, match="BMv2's P4Runtime has no registers"):
            target.driver.register("data_seen")
        return
    target.driver.write_register("data_seen", 5, 0xFFFFFFF0)
    assert target.driver.register("data_seen")[4:7] == [0, 0xFFFFFFF0, 0]
    target.driver.write_register("data_seen", 5, 0)
    with pytest.raises(DriverError, match="bm_register_write was refused"):
        target.driver.write_register("data_seen", 50_000, 0)
