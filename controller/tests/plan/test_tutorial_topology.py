# SPDX-License-Identifier: Apache-2.0
"""Topologies as p4lang's tutorials have them: hosts' addresses and the numbers of ports are those of the file."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testctl.core.topology import Topology
from testctl.plan import load_plan
from testctl.plan.tutorial_topology import read_tutorial
from testctl.testbeds import network
from testctl_agent.spec.errors import PlanError

TRIANGLE: dict[str, Any] = {
    "hosts": {
        "h1": {"ip": "10.0.1.1/31", "mac": "08:00:00:00:01:0A", "commands": ["route add default gw 10.0.1.0 dev eth0"]},
        "h2": {"ip": "10.1.2.2/31", "mac": "08:00:00:00:02:02"},
    },
    "switches": {"s1": {"runtime_json": "s1-runtime.json"}, "s2": {}, "s3": {}},
    "links": [["s1-p3", "s2-p3", "0", 0.5], ["h1", "s1-p1"], ["s1-p2", "s3-p2"], ["s3-p1", "s2-p2"], ["h2", "s2-p1"]],
}


def read(raw: object) -> Topology:
    return read_tutorial(Path("topology.json"), raw if isinstance(raw, str) else json.dumps(raw)).resolve({})


def test_ports_have_the_numbers_of_the_file_and_hosts_its_addresses() -> None:
    found = read(TRIANGLE)
    assert found.neighbours["s1"] == ("h1", "s3", "s2")
    assert list(network.devices_of(found, "s3")) == ["s3:s2", "s3:s1"]
    assert found.all_macs == {"h1": "08:00:00:00:01:0a", "h2": "08:00:00:00:02:02"}
    lines = network.host(found, "h1").splitlines()
    assert "address add 10.0.1.1/16 dev eth0" in lines
    assert "route add 10.1.2.2 dev eth0" in lines
    assert "neighbour replace 10.1.2.2 lladdr 08:00:00:00:02:02 nud permanent dev eth0" in lines
    assert Topology.from_json(found.to_json()) == found


def test_delay_and_bandwidth_of_a_link_can_be_numbers() -> None:
    slow = changed(lambda raw: raw["links"][1].extend([5, 10]))
    assert read(slow).neighbours == read(TRIANGLE).neighbours


def test_a_plan_has_it_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "topology.json").write_text(json.dumps(TRIANGLE))
    plan = tmp_path / "plan.yaml"
    plan.write_text("topology: ./topology.json\nflows: {bulk: h1 -> h2}\ntuples:\n  - [s1:s2, rate, 10mbit]\n")
    (point,) = load_plan(plan, metrics={}).points
    assert point.topology.hosts == {"h1": "10.0.1.1", "h2": "10.1.2.2"}
    assert point.settings["s1:s2"]["rate"] == 10_000_000


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    raw = copy.deepcopy(TRIANGLE)
    change(raw)
    return raw


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('{"hosts": {},\n "links": [}', "topology.json:2:12: want JSON; Expecting value"),
        ([], "want an object with hosts, switches and links"),
        (changed(lambda raw: raw.pop("links")), "want an object with hosts, switches and links"),
        (changed(lambda raw: raw["hosts"]["h1"].pop("mac")), "hosts, h1: want ip and mac; got"),
        (changed(lambda raw: raw["hosts"]["h1"].update(ip="here")), "hosts, h1, ip: want an IPv4 address; got 'here'"),
        (changed(lambda raw: raw["hosts"]["h1"].update(mac="8")), "hosts, h1, mac: want a MAC address; got '8'"),
        (
            changed(lambda raw: raw["hosts"]["h1"].update(ip="10.1.2.2")),
            "want an address once; 10.1.2.2 is there twice",
        ),
        (changed(lambda raw: raw["switches"].update({"S 4": {}})), "that begin with a letter; got 'S 4'"),
        (changed(lambda raw: raw["links"].append(["h1"])), 'want two ends, such as ["h1", "s1-p1"]; got [\'h1\']'),
        (changed(lambda raw: raw["links"].append(["h1", "s9-p1"])), "or a port of a switch such as s1-p1; got 's9-p1'"),
        (changed(lambda raw: raw["links"].append(["h1", "s1-p1"])), "want s1-p1 once; ['h1', 's1-p1'] has it again"),
        (
            changed(lambda raw: raw["links"].append(["h1", "s3-p3"])),
            "host h1: want one link, to a switch; got 2: s1, s3",
        ),
        (TRIANGLE | {"links": [["h1", "h2"]]}, "host h1: want one link, to a switch; got 1: h2"),
        (TRIANGLE | {"links": [["h1", "s1-p1"], ["h2", "s2-p1"]]}, "s1 and s2 are not linked; want one way"),
        (changed(lambda raw: raw["switches"].update(hosts={})), "the name hosts is that of a group of every plan"),
        (changed(lambda raw: raw["links"].append(["s1-p7", "s2-p4"])), "want ports 1 to 4 of s1; got [1, 2, 3, 7]"),
        (changed(lambda raw: raw["links"].append(["s1-p4", "s2-p4"])), "want one link between s1 and each neighbour"),
    ],
)
def test_what_is_wrong_has_its_place(raw: object, why: str) -> None:
    with pytest.raises(PlanError) as refused:
        read(raw)
    assert str(refused.value).startswith("topology.json:")
    assert why in str(refused.value)
