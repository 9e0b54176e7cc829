# SPDX-License-Identifier: Apache-2.0
"""testctl params, metrics, topologies: by name, by part of a name, and what is near."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.cli.parameter_page import page, rows_of
from testctl.cli.search import SYNONYMS
from testctl.cli.topology_page import drawing
from testctl.metrics import metric_names
from testctl.plan import load_plan, load_topology, topology_names
from testctl_agent.params import registry

Call = Callable[..., tuple[int, str, str]]


def test_params_of_an_entity(command: Call) -> None:
    code, said, _ = command("params", "switch", "--json")
    rows = json.loads(said)
    assert code == 0
    assert {row["kind"] for row in rows} == {"switch", "port"}
    assert {row["kind"] for row in json.loads(command("params", "flows", "--json")[1])} == {"flow"}
    assert len(json.loads(command("params", "--json")[1])) > len(rows)


def test_the_page_of_a_parameter(command: Call) -> None:
    code, said, _ = command("params", "buffer")
    assert code == 0
    for line in (
        "units    B, b, k, kB",
        "testbeds inventory, lab, netns",
        "example  - [switch:receiver, buffer, 30kB]",
    ):
        assert line in said
    said = command("params", "mtu")[1]
    assert said.count("every entity of a flow's path has to have the same value") == 2  # of a host, of a switch


def test_sysctls_have_pages(command: Call) -> None:
    assert "one of 0, 1, 2" in command("params", "tcp_ecn")[1]
    assert "a line of text" in command("params", "net.ipv4.tcp_nobody_knows")[1]
    assert "tcp_rmem" in command("params", "tcp_rm")[1]
    assert "net.core.NAME" in command("params", "sysctl")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("params", "ratee"), "no entity or parameter ratee; did you mean rate or "),
        (("params", "xyzzy"), "no entity or parameter xyzzy"),
        (("params", ""), "no entity or parameter ''"),
        (("metrics", "jane"), "no metric jane; did you mean jain?"),
        (("topologies", "dumbell"), "no topology named dumbell; did you mean dumbbell?"),
        (("topologies", "x"), "no topology named x; there are chain, dumbbell, leaf_spine, pair, star"),
        (("topologies", "none/x.yaml"), "none/x.yaml: No such file or directory"),
        (("topologies", "pair", "--set", "n=2"), "topology pair: want its parameters, none; got n=2"),
        (("topologies", "star", "--set", "hosts=1"), "topology star: want hosts from 2 to 100; got hosts=1"),
        (("topologies", "star", "--set", "hosts"), "topology star: want hosts from 2 to 100; got hosts"),
        (("topologies", "--set", "hosts=3"), "--set: want the NAME of a topology too"),
    ],
)
def test_what_there_is_not(command: Call, words: tuple[str, ...], said: str) -> None:
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err.startswith(said)


@pytest.mark.parametrize(
    ("kind", "word", "meant"),
    [
        ("metrics", "fairness", {"jain"}),
        ("metrics", "bandwidth", {"throughput_bps"}),
        ("metrics", "utilization", {"saturation", "total_saturation"}),
        ("metrics", "bufferbloat", {"latency_p99_us", "own_queue_max_bytes"}),
        ("params", "loss", {"fate"}),
        ("params", "bandwidth", {"rate", "htb_rate"}),
        ("params", "latency", {"delay", "jitter"}),
        ("params", "bdp", {"buffer"}),
    ],
)
def test_what_users_call_it(command: Call, kind: str, word: str, meant: set[str]) -> None:
    found = json.loads(command(kind, word, "--json")[1])
    assert meant <= set(found if kind == "metrics" else [row["name"] for row in found])


def test_every_synonym_means_something() -> None:
    names = [*metric_names(), *(name for specs in registry.specs().values() for name in specs)]
    parts = [part for parts in SYNONYMS.values() for part in parts.split()]
    assert [part for part in parts if not any(part in name for name in names)] == []


def test_a_part_of_a_name(command: Call) -> None:
    found = json.loads(command("params", "coalesce", "--json")[1])
    assert len(found) > 3
    assert all("coalesce" in row["name"] for row in found)
    found = json.loads(command("metrics", "stall_", "--json")[1])
    assert "stall_count" in found
    assert all("stall_" in name for name in found)


def test_every_parameter_has_a_page_whose_example_loads() -> None:
    for row in rows_of(None)[0]:
        text = page(row)
        assert row.spec.help in text
        found = re.findall(r"^(?:  example  |           )- (.*)", text, re.MULTILINE)
        if (
            found
            and "lab" in row.spec.testbeds
            and row.spec.scope == "entity"
            and row.name not in ("sysctl", "backend")
        ):
            plan = f"topology: pair\nflows: {{bulk: sender -> receiver}}\ntuples: [{', '.join(found)}]\n"
            assert load_plan(plan.encode(), metrics={}).points, row.name


def test_every_metric_has_a_page(command: Call) -> None:
    for name, info in metric_names().items():
        code, said, _ = command("metrics", name)
        assert code == 0
        assert said.startswith(f"{name}\n  {info.help}\n")
        assert "\n  from     " in said
    assert "null     where these instruments were off" in command("metrics", "throughput_bps")[1]


def test_the_drawing_has_every_entity_once() -> None:
    for name in topology_names():
        topology = load_topology(name)
        drawn = [line.split(" ")[-1] for line in drawing(topology)]
        if topology.ecmp:  # each switch, with its neighbours below it
            below = [one for switch in topology.switches for one in topology.neighbours[switch]]
            assert sorted(drawn) == sorted([*topology.switches, *below])
        else:
            assert sorted(drawn) == sorted(topology.entities)
    assert drawing(load_topology("dumbbell", {"senders": 2})) == [
        "left",
        "|-- sender1",
        "|-- sender2",
        "`-- right",
        "    `-- receiver",
    ]


def test_topologies(command: Call, tmp_path: Path) -> None:
    assert "senders=1 (1 to 100)" in command("topologies")[1]
    said = command("topologies", "dumbbell", "--set", "senders=2")[1]
    assert "topology: {dumbbell: {senders: 2}}" in said
    assert "left, ports left:sender1, left:sender2, left:right" in said
    assert json.loads(command("topologies", "pair", "--json")[1])["hosts"] == {
        "sender": "10.0.0.1",
        "receiver": "10.0.0.2",
    }
    mine = tmp_path / "mine.yaml"
    mine.write_text("nodes: {a: {kind: host, count: 2}, s: {kind: switch}}\nlinks: [{each: [a, s]}]\n")
    assert "hosts     a1 10.0.0.1, a2 10.0.0.2" in command("topologies", str(mine))[1]
