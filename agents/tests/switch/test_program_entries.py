# SPDX-License-Identifier: Apache-2.0
"""From what is asked of the switch to the rows of its tables."""

from __future__ import annotations

import pytest
from testctl_agent.spec import ecmp
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.fate import LAST, Fate, parse
from testctl_agent.spec.flows import Connection
from testctl_agent.spec.loss import loss
from testctl_agent.switch import testbed_program as program
from testctl_agent.switch.drivers.driver import Entry, Exact, Range, Ternary

ONE = Connection("bulk", 0, "10.0.0.1", 40000, "10.0.0.2", 5201)
TWO = Connection("bulk", 1, "10.0.0.1", 40001, "10.0.0.2", 5201)
SIX = Connection("other", 0, "fd00::1", 40000, "fd00::2", 5201)


def test_groups_leave_out_where_a_packet_came_from() -> None:
    assert program.groups({"a": 1, "b": 2, "c": 3}, {}) == {1: (2, 3), 2: (1, 3), 3: (1, 2)}
    tree = {"ff:ff:ff:ff:ff:ff": ["a", "c"]}
    assert program.groups({"a": 1, "b": 2, "c": 3}, tree) == {1: (3,), 2: (1, 3), 3: (1,)}
    assert program.groups({"a": 1, "b": 2}, {"ff:ff:ff:ff:ff:ff": ["a"]}) == {2: (1,)}


def test_forwarding() -> None:
    rows = program.forwarding({"eth1": 1, "eth2": 2}, {"02:00:00:00:00:01": "eth2"})
    assert rows == (
        Entry("forward", {"destination": Exact(2**48 - 1)}, "flood", {"group": 0}),
        Entry("forward", {"destination": Exact(0x020000000001)}, "send", {"port": 2}),
    )


@pytest.mark.parametrize(
    ("mac", "device", "says"),
    [
        ("02:00:00:00:00:01", "eth9", r"want a device of the switch \(eth1\); got eth9"),
        ("02:00", "eth1", "want a MAC address; got '02:00'"),
        ("02:00:00:00:00:0x", "eth1", "want a MAC address; got '02:00:00:00:00:0x'"),
    ],
)
def test_forwarding_that_can_not_be(mac: str, device: str, says: str) -> None:
    with pytest.raises(ApplyError, match=says):
        program.forwarding({"eth1": 1}, {mac: device})


def test_several_devices_have_the_draws_in_equal_parts() -> None:
    ports = {"eth1": 1, "eth2": 2, "eth3": 3}
    both = {"02:00:00:00:00:01": ("eth3", "eth1"), "02:00:00:00:00:02": "eth2", "02:00:00:00:00:03": ["eth3", "eth1"]}
    rows = program.forwarding(ports, both, flood=False, seed=7)
    assert [row.action for row in rows] == ["spread", "send", "spread", "send", "send"]
    assert rows[0].params == rows[2].params == {"group": 1, "spread_salt": ecmp.salt_of(7)}
    assert [(row.keys["draw"], row.params) for row in rows[3:]] == [
        (Range(0, 32767), {"port": 3}), (Range(32768, 65535), {"port": 1}),
    ]  # fmt: skip


def test_connections_have_a_row_for_each_direction() -> None:
    rows = program.connections([ONE, TWO, SIX])
    assert [(row.table, row.params["flow"]) for row in rows] == [
        ("connection4", 1), ("connection4", 2), ("connection4", 3), ("connection4", 4),
        ("connection6", 5), ("connection6", 6),
    ]  # fmt: skip
    assert rows[3].keys == {"src": Exact(0x0A000002), "dst": Exact(0x0A000001), "protocol": Exact(6),
                            "sport": Exact(5201), "dport": Exact(40001)}  # fmt: skip


def test_port_0_is_any_port() -> None:
    there, back = program.connections([Connection("bulk", 0, "10.0.0.1", 0, "10.0.0.2", 5201)])
    assert there == Entry(
        "classify4",
        {"src": Ternary(0x0A000001, 2**32 - 1), "dst": Ternary(0x0A000002, 2**32 - 1), "protocol": Ternary(6, 255),
         "dport": Ternary(5201, 65535)},
        "set_flow", {"flow": 1}, 2,
    )  # fmt: skip
    assert (back.keys["sport"], back.params, back.priority) == (Ternary(5201, 65535), {"flow": 2}, 1)


def test_a_connection_twice() -> None:
    with pytest.raises(ApplyError, match=r"flows: want one row of table connection4 for src .*; got two"):
        program.connections([ONE, ONE])


def test_too_many_connections() -> None:
    many = [Connection("bulk", n, "10.0.0.1", n + 1, "10.0.0.2", 5201) for n in range(2049)]
    assert len(program.connections(many[:2048])) == 4096
    with pytest.raises(ApplyError, match="want at most 2048 connections; got 2049"):
        program.connections(many)


def test_the_first_fate_wins_by_rank_and_priority() -> None:
    rows = program.fates(parse("drop data 1-4,6-8 of bulk, first; mark data 2- of bulk"), [ONE])
    whose = {"flow": Exact(1), "kind": Exact(1)}
    assert rows == (
        Entry("fate", {**whose, "first_ordinal": Range(1, 4)}, "drop", {"rank": 0}, 3),
        Entry("fate", {**whose, "first_ordinal": Range(6, 8)}, "drop", {"rank": 0}, 2),
        Entry("fate", {**whose, "ordinal": Range(2, LAST)}, "mark", {"rank": 1}, 1),
    )


def test_fates_of_bytes_and_acks() -> None:
    rows = program.fates(
        (Fate("drop", "bulk", "bytes", ((0, 999),), first=True), Fate("echo", "bulk", "acks", ((3, 3),))), [ONE]
    )
    assert rows[0].keys == {
        "flow": Exact(1),
        "kind": Exact(1),
        "first_ordinal": Range(1, LAST),
        "offset": Range(0, 999),
    }
    assert rows[1].keys == {"flow": Exact(2), "kind": Exact(2), "ordinal": Range(3, 3)}


def test_each_connection_of_a_flow_has_its_own_rows() -> None:
    rows = program.fates(parse("mark data every 7 of bulk; lose 1e-3 of bulk seed 3"), [ONE, SIX, TWO])
    rule = loss(5, 1e-3, 3)
    assert [row.keys["flow"] for row in rows] == [Exact(1), Exact(5), Exact(1), Exact(5)]
    assert rows[1].params == {"n": 7, "code": 2, "every_rank": 0}
    assert rows[3].params == {"most": 4294966, "salt_a": rule.salts[0], "salt_b": rule.salts[1],
                              "salt_c": rule.salts[2], "loss_rank": 1}  # fmt: skip


def test_a_fate_that_names_no_flow() -> None:
    with pytest.raises(ApplyError, match=r"fate: want one of its flows \(bulk\); got other"):
        program.fates(parse("drop data 1 of other"), [ONE, TWO])
    with pytest.raises(ApplyError, match=r"\(none is set\); got other"):
        program.fates(parse("drop data 1 of other"), [])


def test_more_fates_than_the_table_holds() -> None:
    ranges = tuple((2 * n, 2 * n) for n in range(1, 258))
    with pytest.raises(ApplyError, match="fate: want at most 256 rows of table fate; got 257"):
        program.fates((Fate("drop", "bulk", ranges=ranges),), [ONE])


def test_a_switch_that_can_not_flood_discards() -> None:
    rows = program.forwarding({"a": 1}, {"02:00:00:00:00:01": "a"}, flood=False)
    assert [row.action for row in rows] == ["send"]


def test_thresholds() -> None:
    assert program.thresholds({2: 30_000}) == (Entry("ecn", {"port": Exact(2)}, "threshold", {"depth": 30_000}),)
    with pytest.raises(ApplyError, match=r"port 2, ecn_threshold: want at most 524287 .*; got 524288"):
        program.thresholds({2: 2**19})


def test_cells_of_two_ids_for_each_connection() -> None:
    assert set(program.cells([ONE])) == {(name, flow) for name in program.REGISTERS for flow in (1, 2)}
