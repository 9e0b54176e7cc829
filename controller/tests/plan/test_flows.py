# SPDX-License-Identifier: Apache-2.0
"""Flows by pattern, and hosts whose names need not change with their count."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testctl.plan import Plan, load_plan, load_topology
from testctl.plan.diagnostics import Problems
from testctl.plan.flows import read_flows
from testctl.plan.yaml_reader import parse
from testctl_agent.spec.errors import PlanError

Load = Callable[..., Plan]
REST = "tuples: [[incast, duration, 1s], [hosts, cc, cubic]]\n"


def flows_of(plan: Plan) -> list[tuple[str, str, str]]:
    return [(flow.name, flow.source, flow.sink) for flow in plan.flows]


def test_a_pattern_makes_a_flow_of_each_host_and_a_group_of_them(load: Load) -> None:
    plan = load("topology: {star: {hosts: 4}}\nflows: {incast: h* -> h1}\n" + REST)
    assert flows_of(plan) == [("incast1", "h2", "h1"), ("incast2", "h3", "h1"), ("incast3", "h4", "h1")]
    assert plan.groups["incast"] == plan.groups["flows"] == ("incast1", "incast2", "incast3")
    assert {flow.name for flow in plan.points[0].flows} == {"incast1", "incast2", "incast3"}


@pytest.mark.parametrize("senders", ["senders", "senders*", "sender*"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_group_of_the_topology(load: Load, senders: str, count: int) -> None:
    """The same text for every count; the group is there for one, too."""
    plan = load(f"topology: {{dumbbell: {{senders: {count}}}}}\nflows: {{incast: '{senders} -> receiver'}}\n" + REST)
    assert len(plan.flows) == len(plan.groups["incast"]) == count
    assert {flow.sink for flow in plan.flows} == {"receiver"}


def test_one_to_one(load: Load) -> None:
    text = "topology: {dumbbell: {senders: 2, receivers: 2}}\nflows: {incast: sender* -> receiver*}\n" + REST
    assert flows_of(load(text)) == [("incast1", "sender1", "receiver1"), ("incast2", "sender2", "receiver2")]


def test_from_one_to_all(load: Load) -> None:
    plan = load("topology: star\nflows: {incast: h2 -> hosts}\n" + REST)
    assert flows_of(plan) == [("incast1", "h2", "h1"), ("incast2", "h2", "h3")]


WRONG = {
    "{f: 'x* -> h1'}": "2:12: flow f: no host fits x*; the hosts are h1, h2, h3",
    "{f: '* -> switch'}": "2:12: flow f: switch is a switch; the hosts are h1, h2, h3",
    "{f: 'h1* -> h1'}": "2:12: flow f: want two different hosts; got h1* twice",
    "{f: 'h1 -> h1'}": "2:12: flow f: want two different hosts; got h1 twice",
    "{f: 'h* -> h*'}": "2:12: flow f: want two different hosts; got h* twice",
    "{f: 'hh -> h1'}": "2:12: flow f: no host named hh; the hosts are h1, h2, h3",
    "{f: h* -> h1, f2: h1 -> h2}": "2:9: flow f: the name f2 of the flow from h3 is taken",
    "{aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: h* -> h1}": "2:9: flow aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: the name "
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1 of the flow from h2 is too long",
}


@pytest.mark.parametrize(("flows", "said"), WRONG.items(), ids=WRONG)
def test_wrong_flows(load: Load, flows: str, said: str) -> None:
    with pytest.raises(PlanError) as error:
        load(f"topology: star\nflows: {flows}\ntuples: [[hosts, cc, cubic]]\n")
    assert f"<plan>:{said}" in str(error.value).splitlines()


def test_different_counts() -> None:
    problems = Problems()
    topology = load_topology("dumbbell", {"senders": 3, "receivers": 2})
    read_flows(parse("{f: senders -> receivers}", "x"), topology, problems)
    assert problems.lines == ["x:1:5: flow f: want one host on a side, or as many on both; got 3 and 2 hosts"]


def test_a_pattern_that_makes_too_many(load: Load) -> None:
    flows = ", ".join(f"{name}: h* -> h1" for name in "abc")
    with pytest.raises(PlanError, match="flows: want at most 200; got 297, and maybe more"):
        load(f"topology: {{star: {{hosts: 100}}}}\nflows: {{{flows}}}\ntuples: [[hosts, cc, cubic]]\n")


BOTH = """\
topology: dumbbell
flows: {{bulk: {0} -> receiver}}
groups: {{mine: [{0}]}}
tuples:
  - [{0}, cc, [cubic, reno]]
  - [mine, tso, on]
  - ["left:{0}", delay, 1ms]
exclude: [{{{0}.cc: reno}}]
expect:
  - {{metric: throughput_bps, min: 1, when: {{"left:{0}.delay": 1ms}}}}
"""


def test_the_only_sender_has_two_names(load: Load) -> None:
    """Whatever a plan calls it, the points are the same, and a point is what it was before there was a second name."""
    alone, numbered = (load(BOTH.format(name)) for name in ("sender", "sender1"))
    assert alone.points == numbered.points
    assert [point.to_json() for point in alone.points] == [point.to_json() for point in numbered.points]
    assert list(numbered.topology.hosts) == ["sender", "receiver"]
    assert (
        load(BOTH.format("sender1"), ["sender1.cc=bbr"]).points == load(BOTH.format("sender"), ["sender.cc=bbr"]).points
    )
    text = BOTH.format("sender").partition("expect")[0]
    assert not load(text, without=["left:sender1.delay"]).points[0].settings.get("left:sender")


def test_the_second_name_is_taken_by_no_flow_or_group(load: Load) -> None:
    for text in ("flows: {sender1: sender -> receiver}\n", "flows: {f: sender -> receiver}\ngroups: {sender1: [f]}\n"):
        with pytest.raises(PlanError, match="the name is taken by a"):
            load(f"topology: dumbbell\n{text}tuples: [[hosts, cc, cubic]]\n")


def test_a_host_without_a_count_has_one_name() -> None:
    assert load_topology("pair").aliases == {}
    assert load_topology("dumbbell").aliases == {"sender1": "sender", "receiver1": "receiver"}
    assert load_topology("dumbbell", {"senders": 2}).aliases == {"receiver1": "receiver"}


def test_ids_of_points_are_what_they_were() -> None:
    """With the parameters of the agents; an id is a hash of all that determines a point."""
    text = b"topology: dumbbell\nflows: {f: sender -> receiver}\ntuples: [[hosts, cc, cubic], [f, duration, 1s]]\n"
    assert load_plan(text, metrics={}).points[0].id == "6a15d2c918fa"
