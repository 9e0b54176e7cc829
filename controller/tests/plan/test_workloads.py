# SPDX-License-Identifier: Apache-2.0
"""Flows that make requests: what their points have, and every bad one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.core.outcome import Outcome
from testctl.core.path import empty_path
from testctl.plan import Plan, load_plan
from testctl.records.flow_map import FlowMap
from testctl.testbeds.point_spec import known_connections, spec_of
from testctl_agent.spec import workload
from testctl_agent.spec.errors import PlanError

RATE = "[switch:receiver, rate, 1gbit], [switch, delay, 50us]"
WEB = "[web, requests, 100], [web, sizes, 10kB]"


def plan_of(tuples: str, flows: str = "web: sender -> receiver") -> Plan:
    return load_plan(f"topology: pair\nflows: {{{flows}}}\ntuples: [{tuples}]\n", metrics={})


def test_a_load_is_a_rate_of_arrivals_on_ports_of_their_own() -> None:
    both = "web: sender -> receiver, bulk: sender -> receiver, more: receiver -> sender"
    plan = plan_of(
        f"{RATE}, {WEB}, [web, load, 60%], [more, requests, 7], [more, sizes, 1B], [more, arrival_rate, 5]", both
    )
    (point,) = plan.points
    web, bulk, more = point.flows
    assert web.options["arrival_rate"] == 0.6 * 10**9 / 8 / 10_000
    ports = [(flow.client_port, flow.parallel) for flow in (web, bulk, more)]
    assert ports == [(10_000, 100), (40_064, 1), (10_100, 7)]
    assert point.duration_ns == 10 * 10**9  # bulk's
    way = empty_path(point, web)
    assert way is not None
    assert (way.delay_ns, way.rate_bps, way.segment, way.overhead) == (50_000, 1e9, 1448, 66)
    assert empty_path(point, more) is None
    assert spec_of(point).limit_ns == 120 * 10**9 + int(7 / 5 * 1e9)


def test_a_switch_tells_no_more_connections_apart_than_it_has_numbers_for() -> None:
    two = "web: sender -> receiver, b: sender -> receiver"
    few, many = (plan_of(f"[web, requests, {n}], [web, sizes, 1kB], {ARRIVE}", two) for n in (2047, 2048))
    assert known_connections(few.points[0]).count(";") == 2047
    flow, conn = FlowMap.of(spec_of(many.points[0]), Outcome()).of_places()
    assert (flow.tolist(), conn.tolist()) == ([1], [0])
    assert len(FlowMap.of(spec_of(few.points[0]), Outcome()).of_places()[0]) == 2048
    assert known_connections(many.points[0]) == "b/0 tcp 10.0.0.1:40064 10.0.0.2:5002"


def test_a_file_beside_the_plan_is_in_the_point(tmp_path: Path) -> None:
    (tmp_path / "mine.cdf").write_text("# mine\n1kB 0.5\n9kB 1\n")
    text = "topology: pair\nflows: {web: sender -> receiver}\ntuples:\n  - [web, requests, 5]\n"
    path = tmp_path / "plan.yaml"
    path.write_text(text + "  - [web, arrival_rate, 9]\n  - [web, sizes, ./mine.cdf]\n")
    (point,) = load_plan(path, metrics={}).points
    assert point.flows[0].options["sizes"] == "1000:0.5 9000:1"
    assert point.tuples[-1] == ("web", "sizes", "./mine.cdf")
    (tmp_path / "mine.cdf").write_text("1kB 0.5\n")
    with pytest.raises(PlanError) as refused:
        load_plan(path, metrics={})
    want = "want a distribution that ends with share 1; got 0.5 at 1000 bytes"
    assert str(refused.value) == f"{path}:6:18: flow web, sizes: ./mine.cdf, line 1: {want}"


ONLY = (
    "one that makes requests has only arrival_rate, cc, connections, deadline, draw, every, family, fanout, generator, "
    "keepalive, keepalive_probes, load, nodelay, notsent_lowat, overload, receive_buffer, request_size, requests, "
    "reverse, send_buffer, sizes, start, think, user_timeout, write_size"
)
ARRIVE = "[web, arrival_rate, 9]"
LOADS = "want less than the rate of switch:receiver, or [web, overload, on]"
NO_END = "want a distribution that ends with share 1; got 0.9 at 2000 bytes"
FORMS = (
    "want datamining, keyvalue, websearch, a size such as 20kB, a file beside the plan such as ./sizes.cdf, or "
    "'1kB:0.5 1MB:1'"
)
BAD = {
    f"{WEB}, [web, load, §0.6]": "web, load: want a rate on the path of flow web, which load is a share of; got none",
    f"{RATE}, [web, sizes, 10kB], [web, requests, §9]": "web, requests: want also [web, load, …] or "
    "[web, arrival_rate, …]; got none",
    f"{RATE}, {WEB}, [web, load, §1]": f"web, load: {LOADS}; got 1 of it",
    f"{RATE}, {WEB}, [web, load, §0.5], [switch:receiver, down, 0s-99s]": f"web, load: {LOADS}; got inf of it",
    f"{RATE}, {WEB}, [web, arrival_rate, §20000]": f"web, arrival_rate: {LOADS}; got 1.6 of it",
    f"{RATE}, {WEB}, [web, load, §0.5], {ARRIVE}": "web, load: want one of load, arrival_rate, every, think; got load "
    "and arrival_rate",
    f"{WEB}, [web, think, §1ms]": "web, think: want also [web, reverse, on]: it is a time after an answer; got none",
    f"{WEB}, [web, reverse, on], [web, think, §1ms]": "web, think: want also [web, connections, N], which ask again "
    "and again; got none",
    f"[switch:receiver, rate, '1gbit; 1s 2gbit'], {WEB}, [web, load, §0.5]": "web, load: want [web, arrival_rate, …] "
    "on a path whose rate changes; got load",
    f"{WEB}, {ARRIVE}, [web, request_size, §9B]": "web, request_size: want also [web, reverse, on], so that there is "
    "an answer; got none",
    f"{WEB}, {ARRIVE}, [web, fanout, 9], [web, connections, §8]": "web, connections: want at least 9, as many as come "
    "at a time; got 8",
    f"[web, requests, §3001], [web, fanout, 10], [web, sizes, 1B], {ARRIVE}": "web, requests: want at most 30000 "
    "requests of all flows of a point; got 30010",
    f"{RATE}, {WEB}, [web, load, §0]": "web, load: want a number above 0, at most 10, such as 0.6 or 60%; got 0",
    "§[web, sizes, 10kB]": "web, sizes: want [web, requests, N] with it",
    f"[web, requests, §5], {ARRIVE}": "web, requests: want also [web, sizes, …]; got none",
    f"{WEB}, {ARRIVE}, [web, bytes, §1MB]": f"web, bytes: {ONLY}",
    f"{WEB}, {ARRIVE}, [web, generator, §iperf3]": "web, generator: want tgen for a flow that makes "
    "requests; got iperf3",
    "[web, requests, §30001]": "web, requests: want a whole number from 1 to 30000; got 30001",
    "[web, requests, 9], [web, sizes, §'1kB:0.5 2kB:0.9']": f"web, sizes: {FORMS}; got '1kB:0.5 2kB:0.9' ({NO_END})",
    "[web, requests, 9], [web, sizes, §./none.cdf]": "web, sizes: want a plan in a file, from which the "
    "path begins; got only its text, and './none.cdf'",
    f"[web, requests, 3000], [web, sizes, 1kB], {ARRIVE}, [switch, fate, §'drop data 1 of web']": "switch, fate: want "
    "at most as many connections in the plan as a switch tells apart, or no fate of web",
}


@pytest.mark.parametrize("tuples", BAD)
def test_what_can_t_be_had_is_refused(tuples: str) -> None:
    with pytest.raises(PlanError) as refused:
        plan_of(tuples.replace("§", ""))
    column = len("tuples: [") + tuples.index("§") + 1
    who = "switch" if BAD[tuples].startswith("switch") else "flow"
    assert str(refused.value).splitlines()[0] == f"<plan>:3:{column}: {who} {BAD[tuples]}"


def test_a_path_that_changes_has_no_ideal_time() -> None:
    """So that a slowdown is never below 1."""
    for changes in (
        "[switch:receiver, rate, '1gbit; 1s 2gbit']",
        "[switch, rate, 1gbit], [switch, delay, '1ms; 1s 2ms']",
    ):
        (point,) = plan_of(f"{changes}, {WEB}, {ARRIVE}").points
        assert empty_path(point, point.flows[0]) is None


def test_more_than_a_link_carries_can_be_meant() -> None:
    plan = plan_of(f"{RATE}, {WEB}, [web, load, 1.5], [web, overload, on]")
    assert workload.asks(plan.points[0].flows[0].options)


def test_flows_are_refused_that_overload_a_link_together() -> None:
    each = ", ".join(f"[{name}, requests, 9], [{name}, sizes, 1kB], [{name}, load, 0.5]" for name in ("a", "b"))
    with pytest.raises(PlanError, match=r"flow b, load: want less .*; got 1 of it of a, b "):
        plan_of(f"{RATE}, {each}", "a: sender -> receiver, b: sender -> receiver")


def test_answers_are_a_load_of_the_way_back() -> None:
    """Three at a time: a third as often."""
    back = "[switch:sender, rate, 1gbit], [web, reverse, on], [web, fanout, 3], [web, load, 0.6], [web, connections, 5]"
    (flow,) = plan_of(f"{WEB}, {back}").points[0].flows
    assert flow.options["arrival_rate"] == 2500
    assert flow.parallel == 5
    with pytest.raises(PlanError, match="want less than the rate of switch:sender"):
        plan_of(f"{WEB}, {back.replace('0.6', '1')}")


def test_chunks_have_a_rate_too() -> None:
    (flow,) = plan_of(f"{RATE}, {WEB}, [web, every, 20ms]").points[0].flows
    assert flow.options["arrival_rate"] == 50
    with pytest.raises(PlanError, match="want less than the rate of switch:receiver"):
        plan_of(f"{RATE}, {WEB}, [web, every, 50us]")
