# SPDX-License-Identifier: Apache-2.0
"""Ways of connections through topologies with several ways."""

from __future__ import annotations

from dataclasses import replace

import pytest
from testctl.core import routes
from testctl.core.path import changing, empty_path, path_rates
from testctl.core.point import Point, PointFlow
from testctl.core.topology import Topology
from testctl.plan import load_topology
from testctl_agent.spec import ecmp

SPREAD = load_topology("leaf_spine", {"hosts": 4, "spines": 4})
FLOW = PointFlow("bulk", "h1", "h4", server_port=5201, client_port=40000, parallel=64)


def point(topology: Topology = SPREAD, flow: PointFlow = FLOW, **settings: dict[str, int | str]) -> Point:
    named = {name.replace("__", ":"): values for name, values in settings.items()}
    return Point("p", topology=topology, flows=(flow,), settings=named)


def test_next_hops_are_all_of_equal_cost_in_the_order_of_links() -> None:
    spines = ("spine1", "spine2", "spine3", "spine4")
    assert SPREAD.next_hops("leaf1") == {"h1": ("h1",), "h2": ("h2",), "h3": spines, "h4": spines}
    assert SPREAD.next_hops("spine2")["h1"] == ("leaf1",)


def test_the_tree_has_every_node_and_no_loop() -> None:
    links = {frozenset((switch, other)) for switch in SPREAD.switches for other in SPREAD.tree(switch)}
    assert len(links) == len(SPREAD.hosts) + len(SPREAD.switches) - 1
    assert {name for link in links for name in link} == {*SPREAD.hosts, *SPREAD.switches}


def test_each_connection_has_one_way_and_all_ways_are_taken() -> None:
    ways = routes.ways(point(), FLOW)
    assert {way[2] for way in ways} == {"spine1", "spine2", "spine3", "spine4"}
    assert sorted(conn for conns in ways.values() for conn in conns) == list(range(64))
    assert all(way[:2] == ("h1", "leaf1") and way[3:] == ("leaf2", "h4") for way in ways)
    assert max(map(len, ways.values())) < 30


def test_the_way_back_is_drawn_by_itself() -> None:
    there = {conn: way[2] for way, conns in routes.ways(point(), FLOW).items() for conn in conns}
    back = {conn: way[2] for way, conns in routes.ways(point(), FLOW, back=True).items() for conn in conns}
    assert 0 < sum(there[conn] == back[conn] for conn in there) < 64


def test_another_seed_gives_other_ways_that_are_independent() -> None:
    def spine(seed: int) -> list[str]:
        seeded = point(leaf1={"ecmp_seed": seed})
        return [routes.way(seeded, FLOW, conn)[2] for conn in range(64)]

    assert spine(0) == [routes.way(point(), FLOW, conn)[2] for conn in range(64)]
    pairs = {(a, b) for a, b in zip(spine(0), spine(1), strict=True)}
    assert len(pairs) > 8, "a linear hash would pair each spine with one other"


def test_a_tree_has_the_way_it_had() -> None:
    chain = load_topology("chain", {"hops": 2})
    flow = replace(FLOW, source="h1", sink="h3")
    assert routes.way(point(chain, flow), flow, 0, back=True) == ("h3", "s3", "s2", "s1", "h1")
    assert routes.hops(point(chain, flow), flow)[1] == {("s2", "s3"): list(range(64))}


def test_rates_of_the_ports_of_a_hop_add_up() -> None:
    rates = {f"leaf1__spine{n}": {"rate": 10**8} for n in range(1, 5)}
    found = path_rates(point(**rates, leaf2__h4={"rate": 10**9}), FLOW)
    assert found.pop("leaf2:h4") == 1e9
    ((port, bps),) = found.items()
    assert (len(port.split(" + ")), bps) == (4, 4e8)
    assert path_rates(point(leaf1__spine1={"rate": 10**8}), FLOW) == {}, "another spine has no limit"
    single = replace(FLOW, parallel=1)
    (hop,) = routes.hops(point(), single)[0]
    assert path_rates(point(**rates), single) == {":".join(hop): 1e8}


def test_the_empty_path_is_known_where_all_ways_are_alike() -> None:
    alike = {f"leaf1__spine{n}": {"rate": 10**8, "delay": 1000} for n in range(1, 5)}
    found = empty_path(point(**alike), FLOW)
    assert found is not None
    assert (found.rate_bps, found.delay_ns) == (1e8, 1000)
    assert empty_path(point(**alike | {"leaf1__spine1": {"rate": 10**7, "delay": 1000}}), FLOW) is None
    assert empty_path(point(**alike | {"leaf1__spine1": {"rate": 10**8, "delay": 5}}), FLOW) is None
    assert changing(point(**alike | {"spine1__leaf2": {"rate": "100mbit; 1s 10mbit"}}), FLOW) == ["rate"]


def test_topologies_keep_that_they_have_several_ways() -> None:
    assert Topology.from_json(SPREAD.to_json()) == SPREAD
    assert "ecmp" not in load_topology("pair").to_json()


@pytest.mark.parametrize("ways", [1, 2, 3, 5, 16])
def test_bounds_are_those_of_the_draw(ways: int) -> None:
    for place, (low, high) in enumerate(ecmp.bounds(ways)):
        assert ecmp.way(low, ways) == ecmp.way(high, ways) == place
        assert high + 1 == ecmp.DRAWS or ecmp.way(high + 1, ways) == place + 1


def test_links_between_hosts() -> None:
    two = load_topology("leaf_spine")
    assert two.links_between("h1", "h2") == [("h1", "leaf1"), ("leaf1", "h2")]
    assert two.links_between("h1", "h3") == [
        ("h1", "leaf1"), ("leaf1", "spine1"), ("leaf1", "spine2"), ("spine1", "leaf2"), ("spine2", "leaf2"),
        ("leaf2", "h3"),
    ]  # fmt: skip
