# SPDX-License-Identifier: Apache-2.0
"""The network of a topology, as the text that ip and bridge get."""

from __future__ import annotations

from testctl.core.topology import Topology
from testctl.testbeds.network import bare_switch, devices_of, forwarding, host, links, mac, ports_by_mac, switch

CHAIN = Topology(
    hosts={"h1": "10.0.0.1", "h2": "10.0.0.2", "h3": "10.0.0.3"},
    switches=("s1", "s2", "s3"),
    links=(("h1", "s1"), ("h2", "s2"), ("h3", "s3"), ("s1", "s2"), ("s2", "s3")),
)


def test_ports_are_named_after_the_neighbour() -> None:
    assert devices_of(CHAIN, "h2") == {"h2": "eth0"}
    assert devices_of(CHAIN, "s2") == {"s2:h2": "h2", "s2:s1": "s1", "s2:s3": "s3"}


def test_next_hop_is_the_neighbour_on_the_way() -> None:
    assert list(CHAIN.next_hops("s1").values()) == ["h1", "s2", "s2"]
    assert list(CHAIN.next_hops("s2").values()) == ["s1", "h2", "s3"]


def test_links_make_every_namespace_and_one_pair_a_link() -> None:
    lines = links(CHAIN).splitlines()
    assert [line for line in lines if line.startswith("netns")] == [
        f"netns add {n}" for n in ("h1", "h2", "h3", "s1", "s2", "s3")
    ]
    assert "link add eth0 netns h2 type veth peer name h2 netns s2" in lines
    assert "link add s2 netns s1 type veth peer name s1 netns s2" in lines


def test_a_host_knows_every_other_host() -> None:
    text = host(CHAIN, "h2")
    assert f"link set eth0 address {mac(2)}" in text
    assert "neighbour replace 10.0.0.3 lladdr 02:00:00:00:00:03 nud permanent dev eth0" in text
    assert "neighbour replace 10.0.0.2" not in text


def test_a_switch_learns_and_floods_nothing() -> None:
    assert "stp_state 0" in switch(CHAIN, "s2")
    text = forwarding(CHAIN, "s2")
    assert "fdb replace 02:00:00:00:00:03 dev s3 master static" in text
    assert text.count("learning off flood off") == 3


def test_a_switch_with_a_program_has_no_bridge() -> None:
    assert bare_switch(CHAIN, "s1") == "link set dev h1 promisc on up\nlink set dev s2 promisc on up\n"
    assert ports_by_mac(CHAIN, "s1") == {mac(1): "h1", mac(2): "s2", mac(3): "s2"}
