# SPDX-License-Identifier: Apache-2.0
"""Tuples that a user leaves out, and what the report says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.plan import load_plan
from testctl.report.provenance import lines
from testctl.results.provenance import command_of
from testctl.system import checkout
from testctl_agent.spec.errors import PlanError

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - [switch, rate, [1gbit, 2gbit]]
  - [bulk, duration, 1s]
expect:
  - {name: fast, metric: goodput_bps, min: 1, when: {hosts.cc: cubic}}
"""


def test_it_is_not_set_and_remembered() -> None:
    plan = load_plan(PLAN, testbed="netns", without=["switch.rate"])
    assert len(plan.points) == 1
    assert "rate" not in plan.points[0].settings.get("switch:receiver", {})
    assert plan.left_out == (("switch", "rate", "1gbit, 2gbit"),)
    assert command_of(plan) == "testctl run '<plan>' --testbed netns --without switch.rate"
    assert command_of(load_plan(PLAN)) == ""


def test_what_is_no_tuple_can_not_be_left_out() -> None:
    with pytest.raises(PlanError, match=r"--without switch.rat: want ENTITY.PARAM of a tuple.*mean switch.rate\?"):
        load_plan(PLAN, without=["switch.rat"])


def test_what_is_about_a_tuple_left_out_is_left_out_too() -> None:
    """Exclusions, expectations and figures; what is about other tuples stays, and wrong words are still refused."""
    text = (
        PLAN
        + """\
  - {name: than, metric: goodput_bps, at_least: 2, than: {switch.rate: 1gbit}, when: {switch.rate: 2gbit}}
  - {metric: packets_lost, equals: 0}
exclude: [{hosts.cc: cubic, switch:receiver.rate: 2gbit}]
figures:
  - {title: one, kind: throughput, when: {hosts.cc: cubic}}
  - {title: all, kind: metric, metric: goodput_bps, x: switch.rate}
"""
    )
    plan = load_plan(text, testbed="netns", without=["switch.rate"])
    assert [one.name for one in plan.expectations] == ["fast", "packets_lost 3"], "as the plan has it numbered"
    assert (plan.dropped, len(plan.excludes), len(plan.figures)) == (("than",), 0, 1)
    plan = load_plan(text, testbed="netns", without=["hosts.cc"])
    assert (plan.dropped, len(plan.figures)) == (("fast",), 1)
    with pytest.raises(PlanError, match=r"no parameter named ccc; did you mean cc\?"):
        load_plan(text.replace("when: {hosts.cc", "when: {hosts.ccc"), without=["switch.rate"])


def test_what_another_tuple_sets_as_well_stays() -> None:
    text = PLAN.replace("tuples:\n", "tuples:\n  - [sender, cc, reno]\n")
    text = text.replace("hosts.cc: cubic", "sender.cc: reno")
    assert load_plan(text, testbed="netns", without=["hosts.cc"]).dropped == ()


def test_the_statement_of_a_run() -> None:
    skipped = [{"verdict": "skip", "reason": "no fq"}, {"verdict": "skip", "reason": "no fq"}, {"verdict": "pass"}]
    said = dict(lines({"testbed": "netns", "jobs": 2, "points": skipped, "left_out": [["switch", "rate", "1gbit"]],
                       "noise": None}))  # fmt: skip
    assert said["skipped"] == "2 points: no fq"
    assert said["left out"] == "switch, rate, 1gbit: by --without switch.rate, so it was not set"
    assert "not measured on this machine" in said["noise"]
    assert lines({"points": []}) == []


def test_what_is_said_of_a_rack_can_be_done() -> None:
    said = dict(lines({"testbed": "inventory/mine", "jobs": 1, "points": [], "noise": None}))
    assert said["testbed"].startswith("the rack of inventory/mine, ")
    assert said["noise"] == "not measured from here: testctl aa PLAN --testbed inventory/mine --jobs 1"


def test_the_command_names_the_file_that_was_given(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(PLAN, encoding="utf-8")
    assert command_of(load_plan(file, testbed="netns")) == f"testctl run {file} --testbed netns"


def test_the_command_that_does_it_again_is_given_where_one_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(checkout.root())
    file = Path("plans/one_flow.yaml")
    assert command_of(load_plan(file)) == "testctl run plans/one_flow.yaml"
    smaller = load_plan(file.absolute(), overrides=["switch:receiver.buffer=250kB"])
    assert command_of(smaller) == "testctl run plans/one_flow.yaml --set switch:receiver.buffer=250kB"
    monkeypatch.chdir(tmp_path)
    assert (
        command_of(smaller) == f"testctl run {checkout.root()}/plans/one_flow.yaml --set switch:receiver.buffer=250kB"
    )
