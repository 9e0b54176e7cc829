# SPDX-License-Identifier: Apache-2.0
"""The network of a topology, as the text that ip and bridge get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from testctl.core.topology import Topology, mac
from testctl.plan import load_plan
from testctl.testbeds.network import (
    bare_switch,
    build,
    devices_of,
    forwarding,
    host,
    links,
    ports_by_mac,
    sums_matter,
    switch,
)
from testctl.testbeds.point_spec import spec_of

CHAIN = Topology(
    hosts={"h1": "10.0.0.1", "h2": "10.0.0.2", "h3": "10.0.0.3"},
    switches=("s1", "s2", "s3"),
    links=(("h1", "s1"), ("h2", "s2"), ("h3", "s3"), ("s1", "s2"), ("s2", "s3")),
)


def test_ports_are_named_after_the_neighbour() -> None:
    assert devices_of(CHAIN, "h2") == {"h2": "eth0"}
    assert devices_of(CHAIN, "s2") == {"s2:h2": "h2", "s2:s1": "s1", "s2:s3": "s3"}


def test_next_hop_is_the_neighbour_on_the_way() -> None:
    assert list(CHAIN.next_hops("s1").values()) == [("h1",), ("s2",), ("s2",)]
    assert list(CHAIN.next_hops("s2").values()) == [("s1",), ("h2",), ("s3",)]


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


def test_a_host_with_ipv6_has_fixed_neighbours_and_announces_nothing() -> None:
    both = replace(CHAIN, hosts6={"h1": "fd00::1", "h2": "fd00::2", "h3": "fd00::3"})
    lines = host(both, "h2").splitlines()
    assert "link set eth0 arp off" in lines
    assert "address add fd00::2/64 dev eth0 nodad" in lines
    assert "neighbour replace fd00::3 lladdr 02:00:00:00:00:03 nud permanent dev eth0" in lines
    assert [line for line in host(CHAIN, "h2").splitlines() if line in lines] == host(CHAIN, "h2").splitlines()
    assert "fd00" not in host(CHAIN, "h2")
    assert "arp off" not in host(CHAIN, "h2")


@pytest.mark.parametrize("hosts6", [{}, {"h1": "fd00::1"}])
def test_ipv6_is_off_where_nobody_needs_it(hosts6: dict[str, str]) -> None:
    told: list[tuple[str, str, str]] = []

    def run(argv: Sequence[str], text: str) -> str:
        told.extend(
            (argv[3], file.removeprefix("/proc/sys/net/ipv6/conf/"), text) for file in argv[5:] if "tee" in argv
        )
        return ""

    build(replace(CHAIN, hosts6=hosts6), "ebpf", run)
    off = {name for name, file, text in told if (file, text) == ("all/disable_ipv6", "1")}
    assert off == {"h1", "h2", "h3", "s1", "s2", "s3"} - hosts6.keys()
    unasked = {(file, text) for name, file, text in told if name in hosts6}
    assert ({("eth0/addr_gen_mode", "1"), ("eth0/accept_ra", "0"), ("eth0/dad_transmits", "0")} <= unasked) == bool(
        hosts6
    )


@pytest.mark.parametrize(
    ("fates", "off"),
    [
        ("none", False), ("drop data 3 of bulk", False), ("duplicate data 3 of bulk", False),
        ("drop data 9 of bulk; corrupt data 3 of bulk", True), ("corrupt header 1% of bulk", True),
        ("trim data 3 of bulk", True), ("swap data 3 of bulk", True),
    ],
)  # fmt: skip
def test_hosts_compute_checksums_where_a_switch_makes_wrong_ones(fates: str, off: bool) -> None:
    text = f"topology: pair\nflows: {{bulk: sender -> receiver}}\ntuples: [[switch, fate, {fates}], [bulk, bytes, 1kB]]"
    (point,) = load_plan(text.encode(), metrics={}).points
    told: list[str] = []

    def run(argv: Sequence[str], _: str) -> str:
        told.extend(argv[3:4] if argv[-2:] == ["tx", "off"] else ())
        return ""

    build(point.topology, "ebpf", run, sums=sums_matter(spec_of(point)))
    assert sorted(told) == (["receiver", "sender"] if off else [])


FAMILIES = b"""
topology: {star: {hosts: 3}}
flows: {a: h1 -> h3, b: h2 -> h3}
tuples:
  - [flows, family, [4, 6]]
  - [flows, bytes, 100kB]
"""


def test_the_family_of_all_flows_is_a_value_like_any_other() -> None:
    four, six = load_plan(FAMILIES, metrics={}).points
    assert [[flow.family for flow in point.flows] for point in (four, six)] == [[4, 4], [6, 6]]
    assert not spec_of(four).topology.hosts6
    assert spec_of(six).topology.hosts6 == {"h1": "fd00::1", "h2": "fd00::2", "h3": "fd00::3"}
