# SPDX-License-Identifier: Apache-2.0
"""Fates and thresholds that a plan can't mean are refused with their place."""

from __future__ import annotations

import pytest
from testctl.plan import Plan, load_plan
from testctl_agent.spec.errors import PlanError

HEAD = """topology: {dumbbell: {senders: 2, receivers: 2}}
flows: {bulk: sender1 -> receiver1, side: sender1 -> sender2}
tuples:
"""


def load(*tuples: str, overrides: tuple[str, ...] = ()) -> Plan:
    return load_plan(HEAD + "".join(f"  - {item}\n" for item in tuples), overrides=overrides)


def refused(*tuples: str, overrides: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(PlanError) as error:
        load(*tuples, overrides=overrides)
    return str(error.value).splitlines()


def test_a_fate_is_canonical_in_the_point() -> None:
    plan = load('[left, fate, ["none", "drop data 3-4,1-2 of bulk , first"]]')
    assert [point.settings["left"]["fate"] for point in plan.points] == ["none", "drop data 1-4 of bulk, first"]
    assert "fate" not in load("[left, rate, 1gbit]").points[0].settings.get("left", {})


def test_a_fate_that_can_not_be_read() -> None:
    (line,) = refused('[left, fate, ["none", "drop data 4-1 of bulk"]]')
    want = "want a range that ends at 4 or above; got 1 at column 13"
    assert line == f"<plan>:4:27: switch left, fate: {want}"


def test_a_fate_of_a_flow_that_is_not_there() -> None:
    (line,) = refused('[left, fate, "drop data 1 of bulkk"]')
    said = "the plan has no flow named bulkk; did you mean bulk?"
    assert line == f"<plan>:4:18: switch left, fate: drop data 1 of bulkk: {said}"


def test_a_fate_of_a_flow_that_does_not_cross_the_switch() -> None:
    lines = refused('[switches, fate, ["none", "drop data 1 of bulk; lose 0.1 of side"]]')
    want = "want a flow that crosses switch right; flow side goes sender1 - left - sender2"
    assert lines == [f"<plan>:4:31: switch right, fate: lose 0.1 of side seed 0: {want}"]


def test_a_fate_of_which_nobody_would_know_whether_it_happened() -> None:
    (line,) = refused("[switches, telemetry, off]", '[left, fate, ["none", "drop data 1 of bulk"]]')
    want = "want telemetry on at this switch, or it is not known whether it happened; got off"
    assert line == f"<plan>:5:27: switch left, fate: drop data 1 of bulk: {want}"
    assert load("[right, telemetry, off]", "[left, fate, drop data 1 of bulk]")
    assert load("[switches, telemetry, off]", "[left, fate, none]")


@pytest.mark.parametrize(("backend", "package"), [("bmv2", "testctl_bmv2"), ("tofino", "testctl_hardware")])
def test_fates_that_no_telemetry_would_confirm_are_refused_before_the_run(backend: str, package: str) -> None:
    pytest.importorskip(package, reason="the distribution that brings the back end")
    (line,) = refused(f"[switches, backend, {backend}]", '[left, fate, ["none", "drop data 1 of bulk"]]')
    want = "want a back end with telemetry (ebpf) at this switch, or it is not known whether it happened; got "
    assert line.endswith(f"switch left, fate: drop data 1 of bulk: {want}{backend}")
    assert load(f"[switches, backend, {backend}]", "[left, fate, none]")
    assert load("[switches, backend, [ebpf, netem]]", "[left, fate, drop data 1 of bulk]")


def test_fates_from_the_command_line_are_checked() -> None:
    (line,) = refused("[left, fate, none]", overrides=("right.fate=drop data 1 of side",))
    assert line.startswith("--set right.fate=drop data 1 of side: switch right, fate: drop data 1 of side: want a flow")


def test_what_the_testbed_sets_a_plan_does_not() -> None:
    (line,) = refused("[left, flows, none]")
    assert line == "<plan>:4:12: switch left, flows: is set by the testbed; want a parameter that a plan sets"


def test_a_testbed_has_one_back_end() -> None:
    assert load("[switches, backend, [ebpf, netem]]")
    want = "want it the same on every switch of the testbed"
    (line,) = refused("[left, backend, netem]", "[right, backend, ebpf]")
    assert line == f"<plan>:5:5: switch right, backend: {want}; got ebpf, and netem on switch left"
    (line,) = refused("[right, backend, netem]")
    assert line == f"<plan>:4:5: switch right, backend: {want}; got none on left"


def test_a_threshold_beyond_the_buffer_never_marks() -> None:
    lines = refused("['left:right', ecn_threshold, [10kB, 30kB]]", "[left, buffer, [30kB, 60kB]]")
    want = "want less than the port's buffer, 30kB, or it never marks; got 30kB"
    assert lines == [f"<plan>:4:42: port left:right, ecn_threshold: {want}"]


def test_a_threshold_and_a_buffer_that_never_meet() -> None:
    text = HEAD + "  - ['left:right', ecn_threshold, [10kB, 40kB]]\n  - ['left:right', buffer, [30kB, 60kB]]\n"
    text += "exclude: [{'left:right.ecn_threshold': 40kB, 'left:right.buffer': 30kB}]\n"
    assert len(load_plan(text).points) == 3
    assert load("['left:right', ecn_threshold, 10kB]", "['left:right', buffer, none]")


def test_more_connections_that_swap_than_a_switch_holds_packets_of() -> None:
    requests = ("[bulk, requests, 65]", "[bulk, every, 1ms]", "[bulk, sizes, 1kB]")
    (line,) = refused("[left, fate, 'swap data 1 of bulk; swap data 3 of bulk']", *requests)
    assert line == "<plan>:4:18: switch left, fate: want at most 64 connections with a swap; got 65"
    assert load("[left, fate, 'swap data 1 of bulk']", "[bulk, connections, 64]", *requests)


def test_more_ranges_than_the_switch_has_room_for() -> None:
    many = ",".join(str(2 * n) for n in range(1, 202))
    assert load(f"[left, fate, 'drop data {many} of bulk']")
    (line,) = refused(f"[left, fate, 'drop data {many} of bulk']", "[bulk, parallel, [1, 2]]")
    want = "want at most 256 ranges, counted for each connection; got 402"
    assert line == f"<plan>:4:18: switch left, fate: {want}"
