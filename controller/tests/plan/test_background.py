# SPDX-License-Identifier: Apache-2.0
"""Background traffic of a port, as the hosts and the flow that it becomes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testctl.plan import load_plan
from testctl.testbeds import network
from testctl.testbeds.point_spec import spec_of
from testctl_agent.spec import background, workload
from testctl_agent.spec.errors import PlanError

PLAN = """
topology: dumbbell
flows: {bulk: sender -> receiver}
tuples:
  - [bulk, duration, 2s]
  - [left:right, rate, 100mbit]
  - [all, mtu, 1500]
  - [hosts, kernel, "6.1"]
  - [left:right, background, [none, 30% 20kB, 0.5 websearch]]
"""


def test_a_point_with_background_has_more_hosts_and_a_flow() -> None:
    none, some, more = load_plan(PLAN.encode(), metrics={}).points
    assert list(none.topology.hosts) == ["sender", "receiver"]
    assert [flow.name for flow in none.flows] == ["bulk"]
    assert dict(some.topology.hosts) == {
        "sender": "10.0.0.1", "receiver": "10.0.0.2", "bg1": "10.0.0.3", "bg1sink": "10.0.0.4",
    }  # fmt: skip
    assert some.topology.path("bg1", "bg1sink") == ["bg1", "left", "right", "bg1sink"]
    bulk, made = some.flows
    assert bulk == none.flows[0]
    assert (made.name, made.ends) == ("background1", ("bg1", "bg1sink"))
    assert made.options["arrival_rate"] == pytest.approx(0.3 * 1e8 / 8 / 20_000)
    assert made.options["requests"] == made.parallel == 375
    assert some.settings["bg1"] == {"capture": False, "tcp_info": "off", "kernel": "6.1", "mtu": 1500}
    mean = workload.named("websearch").mean
    assert more.flows[1].options["requests"] == round(0.5 * 1e8 / 8 / mean * 2)
    assert len({none.id, some.id, more.id}) == 3


def test_agents_are_told_nothing_of_it() -> None:
    for point in load_plan(PLAN.encode(), metrics={}).points:
        assert "background" not in spec_of(point).state["left:right"]


def test_where_a_host_is_behind_the_port_it_is_the_other_end() -> None:
    text = PLAN.replace("left:right", "right:receiver")
    point = load_plan(text.encode(), metrics={}).points[1]
    assert list(point.topology.hosts) == ["sender", "receiver", "bg1"]
    assert point.flows[1].ends == ("bg1", "receiver")


def test_a_topology_of_the_tutorials_has_its_addresses_and_ports_beside_it(tmp_path: Path) -> None:
    hosts = {f"h{n}": {"ip": f"10.0.0.{n + 2}/24", "mac": f"08:00:00:00:01:0{n}"} for n in (1, 2)}
    links = [["h1", "s1-p1"], ["s1-p2", "s2-p2"], ["h2", "s2-p1"]]
    topology = {"hosts": hosts, "switches": {"s1": {}, "s2": {}}, "links": links}
    (tmp_path / "topology.json").write_text(json.dumps(topology))
    text = PLAN.replace("dumbbell", "./topology.json").replace("left:right", "s1:s2")
    (tmp_path / "plan.yaml").write_text(text.replace("sender", "h1").replace("receiver", "h2"))
    point = load_plan(tmp_path / "plan.yaml", metrics={}).points[1]
    assert point.topology.name == "topology"
    assert dict(point.topology.hosts) == {"h1": "10.0.0.3", "h2": "10.0.0.4", "bg1": "10.0.0.5", "bg1sink": "10.0.0.6"}
    assert point.topology.neighbours["s1"] == ("h1", "s2", "bg1")
    assert point.topology.path("bg1", "bg1sink") == ["bg1", "s1", "s2", "bg1sink"]
    assert network.host(point.topology, "bg1")


def test_several_ports_are_numbered_in_the_order_of_the_topology() -> None:
    text = PLAN.replace("left:right, rate", "left-right, rate") + "  - [right:left, background, 10% 1MB]\n"
    first, _, last = load_plan(text.encode(), metrics={}).points
    assert [flow.name for flow in first.flows] == ["bulk", "background2"]
    assert [flow.name for flow in last.flows] == ["bulk", "background1", "background2"]
    ports = [range(flow.client_port, flow.client_port + flow.parallel) for flow in last.flows[1:]]
    assert not set(ports[0]) & set(ports[1])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("30% 20kB", "120% 20kB", ":9:37: port left:right, background: want a load above 0 and at most 99% of"),
        ("30% 20kB", "30%", "want a load and sizes, such as '30% websearch' or '0.5 20kB', or none; got '30%'"),
        ("30% 20kB", "30% many", "want sizes: datamining, keyvalue, websearch, a size such as 20kB, or"),
        ("30% 20kB", '"30% 1kB:0.5"', "want a distribution that ends with share 1; got 0.5 at 1000 bytes"),
        ("rate, 100mbit", "rate, none", ":9:5: port left:right, background: want a rate of the port, which the load"),
        ("30% 20kB", "30% 1B", "want at most 30000 requests: larger ones, a smaller load, or a shorter point; got 75"),
        ("30% 20kB", "1e-9 20kB", "want at least one request while the other flows last; got a load that gives"),
        ("bulk: sender", "bg1: sender", ":9:5: port left:right, background: want the name bg1 for it; got a plan in"),
    ],
)  # fmt: skip
def test_background_that_can_not_be(old: str, new: str, said: str) -> None:
    text = PLAN.replace(old, new)
    text = text.replace("[bulk, duration", "[bg1, duration") if "bg1" in new else text
    with pytest.raises(PlanError) as error:
        load_plan(text.encode(), metrics={})
    assert said in str(error.value)


def test_hosts_and_flows_of_background_count_among_those_of_the_topology() -> None:
    text = """
topology: {dumbbell: {senders: 65, receivers: 65}}
flows: {one: sender1 -> receiver1}
tuples:
  - [switches, rate, 10mbit]
  - [switches, background, 90% 100kB]
  - [one, duration, 2s]
"""
    said = (
        r":6:5: port .*: want at most 250 hosts and switches and 200 flows, those of background among them; got 251 and"
    )
    with pytest.raises(PlanError, match=said):
        load_plan(text.encode(), metrics={})


@pytest.mark.parametrize("text", ["none", "0.3 0B:0 20000B:1", "30% websearch", "99% 1B"])
def test_the_canonical_text_is_its_own(text: str) -> None:
    once = background.canonical(text)
    assert background.canonical(once) == once


def test_a_flow_of_the_plan_has_another_name() -> None:
    text = PLAN.replace("bulk", "background12")
    with pytest.raises(
        PlanError, match=r":3:9: flow background12: want another name: this is one of ports' background"
    ):
        load_plan(text.encode(), metrics={})
