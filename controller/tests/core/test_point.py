# SPDX-License-Identifier: Apache-2.0
"""Points and topologies as JSON, and back; JSON that is none of theirs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testctl.core.point import PointSpec
from testctl.core.topology import Topology
from testctl.plan import load_plan
from testctl.testbeds.point_spec import spec_of
from testctl_agent.spec.errors import PlanError

PLANS = Path(__file__).parents[3] / "plans"


@pytest.mark.parametrize("name", ["one_flow", "dctcp_htb", "fates", "families"])
def test_a_point_is_the_same_from_json(name: str) -> None:
    for point in load_plan(PLANS / f"{name}.yaml").points[:3]:
        spec = replace(spec_of(point), kernel_log=True)
        again = PointSpec.from_json(json.loads(json.dumps(spec.to_json())))
        assert again == replace(spec, levels=())
        assert again.to_json() == spec.to_json()


def test_times_are_no_options() -> None:
    text = b"topology: pair\nflows: {b: sender -> receiver}\ntuples: [[b, start, 5ms], [b, duration, 1s]]\n"
    (flow,) = spec_of(load_plan(text).points[0]).flows
    assert (flow.start_ns, flow.duration_ns, flow.options["duration"]) == (5_000_000, 10**9, 10**9)
    assert "start" not in flow.options


FLOW = {"name": "b", "from": "s", "to": "r", "server_port": 1, "client_port": 2}
ODD_FLOW = FLOW | {"options": {"x": []}}


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        (5, "point: want an object; got 5"),
        ({"seed": "1"}, "point: want an integer of 64 bits at seed; got '1'"),
        ({"flows": {}}, "point: want a list at flows; got dict"),
        ({"flows": [{"name": "b"}]}, "point: want flows[0].from; it is not there"),
        ({"flows": [ODD_FLOW]}, "point: want an integer of 64 bits at flows[0].options.x; got list"),
        ({"tuples": [["a", "b"]]}, "point: want a list of 3 at tuples[0]; got 2"),
        ({"state": {"s": 5}}, "point: want an object at state.s; got 5"),
        ({"collect": {"s": {"capture": 5}}}, "point: want an object at collect.s.capture; got 5"),
        ({"topology": {"hosts": {"s": 5}}}, "topology: want a text at hosts.s; got 5"),
        ({"topology": {"hosts6": {"s": 5}}}, "topology: want a text at hosts6.s; got 5"),
        ({"topology": {"links": [["a"]]}}, "topology: want a list of 2 at links[0]; got 1"),
    ],
)  # fmt: skip
def test_what_is_no_point_is_refused(raw: Any, want: str) -> None:
    with pytest.raises(ValueError, match="want") as error:
        PointSpec.from_json(raw)
    assert str(error.value) == want


def test_entities_that_nothing_links_have_no_path() -> None:
    tree = Topology(links=(("a", "left"), ("left", "right"), ("right", "b"), ("c", "left")))
    assert tree.path("a", "b") == ["a", "left", "right", "b"]
    assert tree.path("a", "nowhere") == []
    apart = Topology(hosts={"a": "10.0.0.1", "b": "10.0.0.2"}, switches=("s",), links=(("a", "s"),))
    assert apart.path("a", "s") == ["a", "s"]
    assert apart.path("a", "b") == []
    assert Topology().path("a", "b") == []


def families(*tuples: str) -> PointSpec:
    lines = "".join(f"  - {one}\n" for one in tuples)
    text = (
        f"topology: {{star: {{hosts: 3}}}}\nflows: {{a: h1 -> h3, b: h2 -> h3}}\ntuples:\n  - [b, parallel, 2]\n{lines}"
    )
    return spec_of(load_plan(text.encode()).points[0])


def test_hosts_have_ipv6_where_a_flow_is_over_it() -> None:
    plain, six = families(), families("[b, family, 6]")
    assert plain.topology.hosts6 == {}
    assert "hosts6" not in plain.to_json()["topology"]
    assert six.topology.hosts6 == {"h1": "fd00::1", "h2": "fd00::2", "h3": "fd00::3"}
    assert six.topology.addresses("h2") == ("10.0.0.2", "fd00::2")
    assert six.state["switch"]["flows"] == (
        "a/0 tcp 10.0.0.1:40000 10.0.0.3:5001; "
        "b/0 tcp [fd00::2]:40064 [fd00::3]:5002; b/1 tcp [fd00::2]:40065 [fd00::3]:5002"
    )


@pytest.mark.parametrize(
    ("tuples", "family"),
    [
        ((), None),
        (("[flows, family, 4]",), None),
        (("[flows, family, 6]",), "inet6"),
        (("[b, family, 6]",), "inet,inet6"),
    ],
)
def test_sockets_of_the_families_of_flows_are_sampled(tuples: tuple[str, ...], family: str | None) -> None:
    for host in ("h1", "h2", "h3"):
        assert families(*tuples).collect[host]["tcp_info"].get("family") == family


def test_without_ipv6_a_point_is_what_it_was() -> None:
    """Its identity, and all that a testbed gets: records of earlier runs stay comparable."""
    text = b"topology: pair\nflows: {b: sender -> receiver}\ntuples: [[b, family, [4, 6]], [b, bytes, 1MB]]\n"
    four, six = load_plan(text).points
    assert four.topology == six.topology
    assert "family" not in load_plan(text.replace(b"[b, family, [4, 6]], ", b"")).points[0].flows[0].options


@pytest.mark.parametrize("value", ["5", "inet6", "[4, 46]", "ipv6", "yes"])
def test_a_family_that_is_none_is_refused_with_its_place(value: str) -> None:
    text = f"topology: pair\nflows: {{b: sender -> receiver}}\ntuples:\n  - [b, family, {value}]\n"
    with pytest.raises(PlanError, match=r"^<plan>:4:\d+: flow b, family: want one of 4, 6; got "):
        load_plan(text.encode())
