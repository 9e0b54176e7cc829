# SPDX-License-Identifier: Apache-2.0
"""Rows for a user's P4 program: from the files that people have, by numbers, addresses and names, checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from testctl.plan.entries import rows_of
from testctl.plan.load import load_topology
from testctl.system import p4_programs
from testctl_agent.spec import p4_program
from testctl_agent.spec.p4_program import Row, Rows
from testctl_agent.switch.layout import Layout

pytest.importorskip("p4c_ebpf")
PROGRAMS = Path(__file__).parents[3] / "plugins" / "p4c_ebpf" / "tests" / "programs"
SENDER, RECEIVER = 0x020000000001, 0x020000000002


def layout_of(name: str) -> Layout:
    file = PROGRAMS / f"{name}.json"
    return p4_programs.layout_of(p4_program.of_file(file.read_bytes(), file))


def rows(text: str, program: str = "router") -> Rows:
    value = p4_program.entries_of_file(text.encode(), Path("mine"))
    found = rows_of(value, layout_of(program), load_topology("pair"), "switch")
    assert Rows.of(json.loads(found.to_json())) == found
    return found


def entry(**more: Any) -> str:
    row = {"table": "routes", "match": {"hdr.ipv4.dst": ["receiver", 32]}, "action_name": "ingress.to",
           "action_params": {"mac": "receiver", "port": "receiver"}}  # fmt: skip
    return json.dumps({"table_entries": [row | more]})


def test_both_forms_mean_the_same_row() -> None:
    row = Row("ingress.routes", {"hdr.ipv4.dst": ["lpm", 0x0A000002, 32]}, "ingress.to", {"mac": RECEIVER, "port": 2})
    assert rows(entry()).rows == (row,)
    assert rows("table_add routes ingress.to 10.0.0.2/32 => 02:00:00:00:00:02 2  # to the receiver").rows == (row,)


def test_a_default_action_and_a_range_with_its_priority() -> None:
    found = rows(entry(match={}, default_action=True, action_name="ingress.discard", action_params={}))
    assert found.rows == (Row("ingress.routes", None, "ingress.discard", {}),)
    assert rows("table_set_default routes ingress.to sender 1").rows[0].params == {"mac": SENDER, "port": 1}


def test_bmv2s_lowest_priority_wins() -> None:
    lines = "".join(f"table_add rules deny 10.0.0.{at}&&&255.255.255.255 0&&&0 6&&&255 1 => {at}\n" for at in (1, 2))
    first, second = rows(lines, "acl").rows
    assert first.priority > second.priority


def test_groups_sessions_and_registers() -> None:
    cli = "mc_mgrp_create 5\nmc_node_create 7 1 receiver\nmc_node_associate 5 0\nmirroring_add 9 sender\n"
    found = rows(cli)
    assert found.groups == ((5, ((1, 7), (2, 7))),)
    assert found.mirrors == ((9, ((1, 0),)),)
    runtime = {"multicast_group_entries": [{"multicast_group_id": 5, "replicas": [{"egress_port": 1, "instance": 7}]}],
               "clone_session_entries": [{"clone_session_id": 9, "replicas": [{"egress_port": 1}]}]}  # fmt: skip
    found = rows(json.dumps(runtime))
    assert (found.groups, found.mirrors) == (((5, ((1, 7),)),), ((9, ((1, 0),)),))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (entry(table="other"), "table_entries, 1: table 'other': want one of ingress.routes"),
        (entry(action_name="ingress.drop"), "action 'ingress.drop': want one of ingress.discard, ingress.to"),
        (entry(match={"hdr.ipv4.src": ["receiver", 32]}), "field 'hdr.ipv4.src': want one of hdr.ipv4.dst"),
        (entry(match={"hdr.ipv4.dst": "receiver"}), ""),
        (entry(match={"hdr.ipv4.dst": ["receiver", 33]}), "want a prefix length from 0 to 32; got 33"),
        (entry(match={"hdr.ipv4.dst": ["h9", 32]}), "want a number, an address or a name of the topology; got 'h9'"),
        (entry(action_params={"mac": "receiver", "port": 512}), "ingress.to.port: want a number of 9 bits; got 0x200"),
        (entry(action_params={"mac": "receiver"}), "want parameters ['mac', 'port']; got ['mac']"),
        (entry(action_params={"mac": "switch", "port": 1}), "mac: want a number of 48 bits; got switch"),
        ('{"table_entries": [7]}', "table_entries, 1: want table, match, action_name and action_params; got 7"),
        ('{"clone_session_entries": [{}]}', "clone_session_entries, 1: want clone_session_id and replicas; got {}"),
        ('{"table_entries": null}', "want a list at runtime.table_entries; got None"),
        ('{"multicast_group_entries": {"a": 1}}', "want a list at runtime.multicast_group_entries; got dict"),
        ("table_add routes ingress.to 10.0.0.2/32", "line 1: want table_add TABLE ACTION KEYS => PARAMETERS"),
        ("\n\ntable_add routes ingress.to 0.0.0.0/0 => 1", "line 3: ingress.to: want its parameters, mac, port; got 1"),
        ("table_add routes ingress.to => 1 2", "line 1: table ingress.routes: want 1 keys; got 0"),
        ("register_write none 0 1", "line 1: register 'none': want one of none"),
        ("set_queue_rate 100", "line 1: want no set_queue_rate: a port's rate and buffer are the plan's"),
        ("table_dump routes", "line 1: want table_add, table_set_default"),
        ("mc_node_associate 1 0", "line 1: want a group and a node that were made before"),
        (f"{'table_add routes ingress.discard 10.0.0.1/32 =>'}\n" * 2, "line 2: table ingress.routes: want a row once"),
    ],
)  # fmt: skip
def test_bad_rows_are_refused_with_their_place(text: str, why: str) -> None:
    if not why:
        assert rows(text).rows[0].keys == {"hdr.ipv4.dst": ["lpm", 0x0A000002, 32]}
        return
    with pytest.raises(ValueError, match=r"^mine, ") as refused:
        rows(text)
    assert why in str(refused.value)
