# SPDX-License-Identifier: Apache-2.0
"""The topologies there are, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.plan import load_plan, load_topology, topology_dir, topology_names
from testctl.plan.topology_file import read_topology
from testctl_agent.spec.errors import PlanError

from controller.tests.support.refusal import refusal


def test_pair() -> None:
    pair = load_topology("pair")
    assert pair.hosts == {"sender": "10.0.0.1", "receiver": "10.0.0.2"}
    assert pair.ports("switch") == ("switch:sender", "switch:receiver")
    assert pair.path("receiver", "sender") == ["receiver", "switch", "sender"]


def test_a_node_that_is_alone_has_no_number() -> None:
    assert list(load_topology("dumbbell").hosts) == ["sender", "receiver"]
    four = load_topology("dumbbell", {"senders": 2, "receivers": 2})
    assert list(four.hosts) == ["sender1", "sender2", "receiver1", "receiver2"]
    assert four.groups == {"senders": ("sender1", "sender2"), "receivers": ("receiver1", "receiver2")}
    assert four.ports("left") == ("left:sender1", "left:sender2", "left:right")
    assert four.path("sender2", "receiver1") == ["sender2", "left", "right", "receiver1"]


def test_chain() -> None:
    chain = load_topology("chain", {"hops": 2})
    assert chain.switches == ("s1", "s2", "s3")
    assert chain.path("h1", "h3") == ["h1", "s1", "s2", "s3", "h3"]
    assert chain.ports("s2") == ("s2:s1", "s2:s3", "s2:h2")


def test_star() -> None:
    star = load_topology("star", {"hosts": 100})
    assert len(star.hosts) == 100
    assert star.hosts["h100"] == "10.0.0.100"


def test_every_topology_has_names_that_devices_can_have() -> None:
    for name in topology_names():
        found = read_topology(topology_dir() / f"{name}.yaml")
        biggest = found.resolve({p.name: p.most for p in found.parameters})
        assert all(len(n) <= 15 for n in (*biggest.hosts, *biggest.switches))


def test_where_topologies_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TESTCTL_LAB", str(tmp_path))
    with pytest.raises(PlanError, match="TESTCTL_LAB: want a directory with topologies/ in it; got"):
        topology_dir()
    (tmp_path / "topologies").mkdir()
    assert topology_dir() == tmp_path / "topologies"


def test_a_topology_of_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "topologies").mkdir()
    text = "nodes: {a: {kind: host}, b: {kind: host}, s: {kind: switch}}\nlinks: [{each: [a, s]}, {each: [b, s]}]\n"
    (tmp_path / "topologies" / "mine.yaml").write_text(text)
    monkeypatch.setenv("TESTCTL_LAB", str(tmp_path))
    plan = load_plan(b"topology: mine\nflows: {f: a -> b}\ntuples: [[f, duration, 1s]]\n", metrics={})
    assert list(plan.topology.hosts) == ["a", "b"]


MINE = """
parameters: {senders: {default: 1, least: 1, most: 9}}
nodes: {a: {kind: host, count: senders}, b: {kind: host}, s: {kind: switch}}
links: [{each: [a, s]}, {each: [b, s]}]
"""
REST = "flows: {f: b -> a}\ntuples: [[f, duration, 1s]]\n"


def test_a_topology_beside_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path begins at the plan, wherever one is; the plan holds its text, and is the same from that."""
    monkeypatch.chdir("/")
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "mine.yaml").write_text(MINE)
    path = tmp_path / "p.yaml"
    path.write_text(f"topology: ./nets/mine.yaml\n{REST}")
    plan = load_plan(path, metrics={})
    assert (plan.topology.name, list(plan.topology.hosts), plan.topology_text) == ("mine", ["a", "b"], MINE)
    assert load_plan(plan.text.encode(), metrics={}, topology_text=plan.topology_text).points == plan.points
    path.write_text(f"topology: {{./nets/mine.yaml: {{senders: 2}}}}\n{REST.replace('-> a', '-> a2')}")
    assert list(load_plan(path, metrics={}).topology.hosts) == ["a1", "a2", "b"]
    assert load_plan(path.with_name("p.yaml"), metrics={}).points[0].id != plan.points[0].id


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("./none.yaml", "p.yaml:1:11: topology ./none.yaml: can't be read: No such file or directory"),
        ("./mine.yml", "topology ./mine.yml: want a path of a .yaml file that begins at the plan, such as ./mine.yaml"),
        ("/etc/mine.yaml", "topology /etc/mine.yaml: want the path of a file below the plan's directory, such as"),
        ("./bad.yaml", "bad.yaml:1:1: want a field links; got none"),
        ("./no_switch.yaml", "no_switch.yaml:3:10: want link: [one, one], "),
        ("{./mine.yaml: {senders: 10}}", "topology ./mine.yaml, senders: want a whole number from 1 to 9; got 10"),
    ],
)
def test_a_topology_beside_the_plan_that_can_not_be_had(tmp_path: Path, named: str, said: str) -> None:
    (tmp_path / "mine.yaml").write_text(MINE)
    (tmp_path / "bad.yaml").write_text("nodes: {}")
    (tmp_path / "no_switch.yaml").write_text(
        "parameters: {n: {default: 0, least: 0}}\n"
        "nodes: {h: {kind: host, count: 2}, s: {kind: switch, count: n}}\nlinks: [{divide: [h, s]}]\n"
    )
    path = tmp_path / "p.yaml"
    path.write_text(f"topology: {named}\n{REST}")
    assert said in refusal(load_plan, path, metrics={})


def test_a_plan_without_a_file_has_no_topology_beside_it() -> None:
    text = f"topology: ./mine.yaml\n{REST}".encode()
    with pytest.raises(PlanError, match="want a plan in a file, from which the path begins; got only its text"):
        load_plan(text, metrics={})
    with pytest.raises(PlanError, match=r"want the text that the run used; it has no topology\.yaml"):
        load_plan(text, metrics={}, topology_text="")


def test_unknown_topology_or_parameter() -> None:
    with pytest.raises(PlanError, match=r"^no topology named pari; did you mean pair\?$"):
        load_topology("pari")
    with pytest.raises(PlanError, match=r"^topology chain: want hops from 1 to 30; got hops=31$"):
        load_topology("chain", {"hops": 31})
    with pytest.raises(PlanError, match=r"^topology pair: want its parameters, none; got n=1$"):
        load_topology("pair", {"n": 1})


NODES = "nodes: {a: {kind: host}, b: {kind: host}, s: {kind: switch}, t: {kind: switch}}\n"
BAD = {
    "nodes: {}": "1:1: want a field links; got none",
    "nodes: {}\nlinks: []\nx: 1": "3:1: no field named x; want one of about, parameters, nodes, links, ecmp",
    "nodes: {a: {kind: hst}}\nlinks: []": "1:19: a: kind: want one of host, switch; got hst",
    "nodes: {a: {kind: host, count: n}}\nlinks: []": "1:32: a, count: want a number, a parameter, "
    "or a parameter + a number; got n",
    "nodes: {A: {kind: host}}\nlinks: []": "1:9: node: want a name of a-z, 0-9 and _ that begins with a letter, "
    "at most 15 characters; got A",
    "nodes: {abcdefghijklmno: {kind: host, count: 2}}\nlinks: []": "1:9: abcdefghijklmno: the name abcdefghijklmno1 "
    "has more than 15 characters",
    "nodes: {a: {kind: host, count: 2}, a1: {kind: host}}\nlinks: []": "1:36: a1: the name a1 is there twice",
    "nodes: {hosts: {kind: host}}\nlinks: []": "1:9: hosts: the name hosts is that of a group of every plan",
    "nodes: {a: {kind: host, group: all}}\nlinks: []": "1:32: a: the name all is that of a group of every plan",
    NODES + "links: {}": "2:8: links: want a list; got an empty mapping",
    NODES + "links: [a]": "2:9: links: want one of link, each, mesh, divide, zip or chain; got a",
    NODES + "links: [link: [a, z]]": "2:19: link: no node named z",
    NODES + "links: [link: [a]]": "2:9: want link: [one, one], each: [some, one], mesh: [some, some], "
    "divide: [some, as many or fewer], zip: [some, as many] or chain: some; got link of 1",
    NODES + "links: [link: [a, s], link: [b, s], link: [a, t]]": "2:8: host a: want one link, to a switch; got 2: s, t",
    "nodes: {a: {kind: host}, s: {kind: switch}}\nlinks: [link: [a, s]]": "2:8: want two hosts or more; got 1",
    NODES + "links: [link: [a, b]]": "2:8: host a: want one link, to a switch; got 1: b",
    NODES + "links: [link: [a, s], link: [b, s]]": "2:8: s and t are not linked; want one way between any two",
    NODES + "links: [link: [a, s], link: [b, t], link: [s, t], link: [t, s]]": "2:51: want one link between t and s; "
    "got another",
}


@pytest.mark.parametrize(("text", "want"), BAD.items())
def test_bad_file(tmp_path: Path, text: str, want: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    assert refusal(lambda: read_topology(path).resolve({})).splitlines()[0] == f"{path}:{want}"


MANY = "nodes: {a: {kind: host, count: 5}, b: {kind: host}, s: {kind: switch, count: 3}, t: {kind: switch, count: 2}}\n"


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ("[{divide: [a, s]}, {link: [b, t]}]", "want link: [one, one], each: [some, one], mesh: [some, some], divide"),
        ("[{divide: [s, a]}]", "got divide of 3, 5"),
        ("[{divide: [a, s]}, {mesh: [s, t]}, {zip: [b, b]}]", "want links between two nodes; got one from b to itself"),
        ("[{divide: [a, s]}, {mesh: [s, t]}, {chain: t}]", "host b: want one link, to a switch; got 0: none"),
    ],
)
def test_links_of_several_that_can_not_be(tmp_path: Path, links: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{MANY}links: {links}\necmp: true\n")
    assert said in refusal(lambda: read_topology(path).resolve({}))


RING = """
nodes: {a: {kind: host}, b: {kind: host}, s: {kind: switch}, t: {kind: switch}, u: {kind: switch}, v: {kind: switch}}
links: [{link: [a, s]}, {link: [b, v]}, {link: [s, t]}, {link: [s, u]}, {link: [t, v]}, {link: [u, v]}]
"""


def test_a_loop_is_refused_unless_ways_of_equal_cost_are_meant(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RING)
    with pytest.raises(PlanError, match=r"the link u - v closes a loop; want one way between any two, or `ecmp: true`"):
        read_topology(path).resolve({})
    path.write_text(f"{RING}ecmp: true\n")
    assert read_topology(path).resolve({}).next_hops("s")["b"] == ("t", "u")
    path.write_text(f"{RING}ecmp: maybe\n")
    with pytest.raises(PlanError, match=r"mine\.yaml:4:7: ecmp: want true or false; got maybe"):
        read_topology(path)
    path.write_text(f"{RING.replace('{link: [u, v]}', '{link: [s, t]}')}ecmp: true\n")
    with pytest.raises(PlanError, match="want one link between s and t; got another"):
        read_topology(path).resolve({})


def test_more_ways_than_a_switch_can_have(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "nodes: {a: {kind: host}, b: {kind: host}, l: {kind: switch, count: 2}, s: {kind: switch, count: 17}}\n"
        "ecmp: true\nlinks: [{mesh: [l, s]}, {divide: [h, l]}]\n".replace("a: {kind: host}, b: {kind: host}",
        "h: {kind: host, count: 2}")
    )  # fmt: skip
    with pytest.raises(PlanError, match=r"mine\.yaml:3:8: switch l1: want at most 16 ways to h2; got 17"):
        read_topology(path).resolve({})


def test_links_between_switches_are_entities() -> None:
    text = """
topology: {leaf_spine: {hosts: 2}}
flows: {bulk: h1 -> h2}
tuples:
  - [leaf1-spine1, rate, 10mbit]
  - [spine2-leaf1, delay, 1ms]
  - [bulk, duration, 1s]
"""
    (point,) = load_plan(text.encode(), metrics={}).points
    assert {entity: dict(values) for entity, values in point.settings.items() if ":" in entity} == {
        "leaf1:spine1": {"rate": 10**7}, "spine1:leaf1": {"rate": 10**7},
        "leaf1:spine2": {"delay": 10**6}, "spine2:leaf1": {"delay": 10**6},
    }  # fmt: skip
    for word, said in (
        (
            "h1-leaf1",
            "link h1-leaf1: want one between two switches; a host's end has no port, so set leaf1:h1, the way",
        ),
        ("leaf1-leaf2", "link leaf1-leaf2: the topology has no such link"),
        ("leaf1-lefa", "no host, switch, port, flow or group named leaf1-lefa"),
    ):
        assert said in refusal(load_plan, text.replace("leaf1-spine1", word).encode(), metrics={})


def test_a_bridge_has_one_way() -> None:
    text = b"topology: leaf_spine\nflows: {bulk: h1 -> h4}\ntuples: [[bulk, bytes, 1kB], [switches, backend, netem]]\n"
    with pytest.raises(PlanError, match=r":3:50: switch leaf1, backend: want a back end that spreads connections over"):
        load_plan(text, metrics={})
