# SPDX-License-Identifier: Apache-2.0
"""What summary.json says of how a run was made, and the plan that is made of it again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from testctl.metrics import metric_names
from testctl.plan import Plan, load_plan
from testctl.results import Run
from testctl.results.provenance import Provenance, command_without, plan_of
from testctl_agent.spec.errors import PlanError

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [hosts, tso, on]
  - [bulk, duration, 100ms]
"""
SETS = ("hosts.cc=bbr,cubic", "hosts.kernel='6.1'")
WITHOUT = ("hosts.tso",)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "plan.yaml").write_text(PLAN)
    return load_plan(tmp_path / "plan.yaml", metrics=metric_names(), overrides=SETS, without=WITHOUT)


def summary_of(plan: Plan) -> dict[str, object]:
    made = Provenance.of(plan, Path("results"), 2, {"testctl": "1"})
    found: dict[str, object] = json.loads(json.dumps(made.to_json()))
    own = made if plan.testbed != "lab" else replace(made, jobs=0)
    assert Provenance.from_json(found) == own
    return found


def test_a_run_says_its_overrides(plan: Plan) -> None:
    found = summary_of(plan)
    assert found["overrides"] == list(SETS)
    assert found["left_out"] == [["hosts", "tso", "on"]]
    assert not {"testbed", "jobs", "noise", "dropped"} & found.keys()
    on_this_kernel = summary_of(replace(plan, testbed="netns"))
    assert (on_this_kernel["testbed"], on_this_kernel["jobs"], on_this_kernel["noise"]) == ("netns", 2, None)


@pytest.mark.parametrize(("name", "on"), [("hosts", ""), ("host-2", " --on host-2")])
def test_the_command_names_the_tree_whose_kernel_ran(plan: Plan, name: str, on: str) -> None:
    """Not the kernel of the cache that is called "source", which the next build of a tree takes the place of."""
    of_tree = replace(plan, overrides=(SETS[0], f"{name}.kernel='source'"), tree={"source": "/linux@v6.12"})
    assert f" --set {SETS[0]} --source /linux@v6.12{on} --without " in str(summary_of(of_tree)["reproduce"])


def test_the_plan_of_a_run_is_made_again(plan: Plan, tmp_path: Path) -> None:
    again = plan_of(Run(tmp_path, summary_of(plan), ()))
    assert [point.id for point in again.points] == [point.id for point in plan.points]
    assert (again.overrides, again.left_out) == (plan.overrides, plan.left_out)


def test_what_another_tuple_needs_is_not_proposed_to_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(
        "topology: dumbbell\nflows: {bulk: sender -> receiver}\ntuples:\n  - [left:right, rate, 10mbit]\n"
        "  - [left:right, delay, 1ms]\n  - [left:right, background, 30% websearch]\n  - [bulk, duration, 20s]\n"
    )
    plan = load_plan(file, metrics=metric_names(), testbed="netns")
    assert command_without(plan, [("left:right", "delay")]).endswith(" --testbed netns --without left:right.delay")
    assert command_without(plan, [("left:right", "rate")]) == "", "the load of the background is a share of it"
    assert command_without(plan, [("left:right", "buffer")]) == "", "no tuple sets it"


def test_a_command_that_can_not_be_read_has_no_overrides(tmp_path: Path) -> None:
    assert Provenance.from_json({"reproduce": "testctl run 'a --set b"}).overrides == ()
    with pytest.raises(PlanError, match=r"want the run's plan\.yaml; there is none"):
        plan_of(Run(tmp_path, {}, ()))
