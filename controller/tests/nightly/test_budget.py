# SPDX-License-Identifier: Apache-2.0
"""The choice of points within a budget: the same again, whatever the clock did, and what it says of the rest."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from testctl.cli.runs import seconds
from testctl.nightly import KEY, Schedule, TimeBudget, interrupted, last_run, like, nightly_runs, presumed, schedule
from testctl.nightly.budget import AIM
from testctl.plan import Plan, cost_ms, load_plan
from testctl.results import PointResult, Run, RunWriter, build_summary, load_run, write_point
from testctl_agent.spec.errors import PlanError

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno, bbr, vegas]]
  - [hosts, tso, [on, off]]
  - [hosts, gro, [on, off]]
  - [hosts, tcp_ecn, [0, 1, 2]]
  - ["switch:receiver", rate, [10mbit, 1gbit]]
  - [bulk, duration, 1s]
design: {cover: 3}
"""


@pytest.fixture
def plan() -> Plan:
    return load_plan(PLAN)


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def live(plan: Plan, chosen: Schedule, budget_s: float, capacity: int | None, slow: float = 1.0) -> dict[str, Any]:
    """A nightly run on a machine that takes `slow` times a cost unit's ms; what it says."""
    clock = Clock()
    budget = TimeBudget(chosen, budget_s, 1, capacity, clock=clock)
    done = []
    for point in chosen.points:
        if budget.admits(point):
            wall_s = cost_ms(point) * slow / 1000
            clock.now += wall_s
            budget.ended(point, wall_s)
            done.append(point)
    said = budget.summary(replace(plan, points=tuple(done)), Path("results/20260101"))
    assert re.fullmatch(r"testctl nightly \S.* --like results/20260101", said["reproduce"])
    found: dict[str, Any] = said[KEY]
    return found | {"done": [point.id for point in done]}


def total_s(plan: Plan) -> float:
    return sum(map(cost_ms, plan.points)) / 1000


def test_the_second_night_runs_the_points_of_the_first_though_the_machine_is_slower(plan: Plan) -> None:
    budget_s = total_s(plan) / 2
    first = live(plan, schedule(plan, None), budget_s, None)
    assert first["ended_by"] == "the clock"
    assert 0 < len(first["done"]) < len(plan.points)
    assert first["took_s"] <= AIM * budget_s
    second = live(plan, schedule(plan, first["capacity"]), budget_s, first["capacity"], slow=0.98 / AIM)
    assert second["done"] == first["done"]
    assert (second["ended_by"], second["capacity"]) == ("the estimate", first["capacity"])


def test_a_machine_that_is_much_slower_or_faster_moves_the_next_night(plan: Plan) -> None:
    budget_s = total_s(plan) / 2
    first = live(plan, schedule(plan, None), budget_s, None)
    late = live(plan, schedule(plan, first["capacity"]), budget_s, first["capacity"], slow=3)
    assert late["ended_by"] == "the clock"
    assert late["done"] == first["done"][: len(late["done"])]
    assert len(late["done"]) < len(first["done"])
    assert schedule(plan, late["capacity"]).points == schedule(plan, None).points[: len(late["done"])]
    early = live(plan, schedule(plan, first["capacity"]), budget_s, first["capacity"], slow=0.3)
    assert early["done"] == first["done"]
    assert early["capacity"] > first["capacity"]


def test_what_was_not_run_is_listed_and_the_coverage_is_said(plan: Plan) -> None:
    said = live(plan, schedule(plan, None), total_s(plan) / 4, None)
    assert {*said["done"], *(one["id"] for one in said["not_run"])} == {point.id for point in plan.points}
    assert len(said["done"]) + len(said["not_run"]) == len(plan.points)
    tuples = {point.id: [list(one) for one in point.tuples] for point in plan.points}
    assert all(one["tuples"] == tuples[one["id"]] for one in said["not_run"])
    singles, doubles, triples = said["coverage"]
    assert singles["covered"] / singles["feasible"] > doubles["covered"] / doubles["feasible"]
    assert triples["covered"] < triples["feasible"]
    assert said["missing_pairs"]
    whole = live(plan, schedule(plan, None), 10 * total_s(plan), None)
    assert (whole["ended_by"], whole["not_run"], whole["missing_pairs"]) == ("all points run", [], [])
    assert [one["covered"] == one["feasible"] for one in whole["coverage"]] == [True] * 3


def test_in_wall_clock_time_repetitions_are_chosen_together() -> None:
    """With some of them nothing could be compared."""
    plan = load_plan(PLAN + "repeat: 3\n", testbed="netns")
    units = sum(cost_ms(point, "netns") for point in plan.points)
    chosen = schedule(plan, units // 2)
    counts = {point.levels: sum(one.levels == point.levels for one in chosen.points) for point in chosen.points}
    assert set(counts.values()) == {3}
    assert 0 < len(chosen.points) < len(plan.points)
    assert chosen.cost <= units // 2
    stray = chosen.left_out[-1]
    assert {one.repeat for one in schedule(plan, units // 2, {stray.id}).points[:3]} == {0, 1, 2}
    assert presumed(plan, 100.0, 1) == 80_000, "a unit is a ms"
    assert presumed(load_plan(PLAN), 100.0, 1) is None, "in the lab the clock says"


def test_what_failed_comes_first_and_changes_only_the_order(plan: Plan) -> None:
    capacity = sum(map(cost_ms, plan.points)) // 2
    usual = schedule(plan, capacity)
    bad = {usual.points[3].id, usual.points[-1].id}
    now = schedule(plan, capacity, bad)
    assert {point.id for point in now.points[:2]} == bad == set(now.first)
    assert {point.id for point in now.points} == {point.id for point in usual.points}
    stray = usual.left_out[-1]
    taken = schedule(plan, capacity, {stray.id})
    assert taken.points[0] == stray
    assert taken.cost <= capacity
    assert len(taken.points) + len(taken.left_out) == len(plan.points)


def test_points_of_an_interrupted_night_count_with_the_time_they_took(plan: Plan) -> None:
    clock = Clock()
    budget = TimeBudget(schedule(plan, None), 100, 2, None, clock=clock)
    budget.ended(plan.points[0], 158.0)  # at two at once 79 s of the 80 that are aimed at
    assert not budget.admits(plan.points[1])
    assert budget.late


def written(results: Path, plan: Plan, name: str, verdicts: dict[str, str], **said: Any) -> Run:
    """A nightly run on disk, of points without records."""
    writer = RunWriter.create_at(results / name)
    for point in plan.points:
        write_point(writer.path, PointResult(point=point.to_json(), verdict=verdicts.get(point.id, "pass")))
    order = [point.id for point in plan.points]
    summary = build_summary(writer.path, plan=plan.name, started=datetime.now(UTC), wall_s=1, versions={}, order=order)
    return load_run(writer.finish(summary | ({KEY: said} if said else {})))


def test_the_past_is_read_from_the_results(tmp_path: Path, plan: Plan) -> None:
    assert last_run(tmp_path, plan) is None
    said = {"budget_s": 60.0, "jobs": 2, "capacity": 5000}
    written(tmp_path, plan, "20260101T000000Z-plan", {})
    assert last_run(tmp_path, plan) is None, "a run, but not a nightly one"
    a, b, c = (point.id for point in plan.points[:3])
    written(tmp_path, plan, "20260102T000000Z-plan", {a: "skip", b: "fail"}, **said)
    written(tmp_path, plan, "20260103T000000Z-plan", {a: "skip", c: "invalid"}, **said)
    (tmp_path / "20260104T000000Z-plan").mkdir()
    foreign = {"plan": plan.name, KEY: said, "left_out": [["hosts"]]}
    (tmp_path / "20260104T000000Z-plan" / "summary.json").write_text(json.dumps(foreign), encoding="ascii")
    assert [path.name for path in nightly_runs(tmp_path, plan)] == ["20260102T000000Z-plan", "20260103T000000Z-plan"]
    last = last_run(tmp_path, plan)
    assert last is not None
    assert last.first == {b, c}, "one passed again, one is not valid"
    assert last.capacity(60.0, 2) == 5000
    assert last.capacity(30.0, 2) == 2500
    assert last.capacity(60.0, 1) == 2500
    (tmp_path / "20260103T000000Z-plan" / "points" / a / "point.json").write_text("{")
    before = last_run(tmp_path, plan)
    assert before is not None, "the last one is damaged"
    assert (before.run.name, before.first) == ("20260102T000000Z-plan", {b})


def test_only_what_was_interrupted_since_is_gone_on_with(tmp_path: Path, plan: Plan) -> None:
    stopped = tmp_path / "20260101T000000Z-plan.in-progress"
    stopped.mkdir()
    assert interrupted(tmp_path, plan) == stopped
    (tmp_path / "20260101T000001Z-other-plan.in-progress").mkdir()
    assert interrupted(tmp_path, plan) == stopped, "the other is of a plan whose name ends in this one's"
    written(tmp_path, plan, "20260102T000000Z-plan", {}, budget_s=60.0, jobs=1, capacity=1)
    assert interrupted(tmp_path, plan) is None
    written(tmp_path, plan, "20260103T000000Z-plan", {}, budget_s=60.0)
    assert [path.name for path in nightly_runs(tmp_path, plan)] == ["20260102T000000Z-plan"], "the last one is damaged"


def test_another_night_again(tmp_path: Path, plan: Plan) -> None:
    some = replace(plan, points=plan.points[3:7])
    run = written(tmp_path, some, "20260101T000000Z-plan", {}, budget_s=60.0, jobs=1, capacity=1)
    again = like(plan, run)
    assert again.points == plan.points[3:7]
    assert len(again.left_out) == len(plan.points) - 4
    assert all(TimeBudget(again, 1e-9, 1, 1, timed=False).admits(point) for point in again.points)
    with pytest.raises(PlanError, match="want a run of this plan"):
        like(some, written(tmp_path, plan, "20260102T000000Z-plan", {}))


def test_a_budget_in_words() -> None:
    assert [seconds("--budget", text) for text in ("90s", "30m", "30min", "1.5h", "0s")] == [90, 1800, 1800, 5400, 0]
    for bad in ("30", "m", "-1m", "1d"):
        with pytest.raises(PlanError, match="--budget: want a time such as 90s, 30m or 2h"):
            seconds("--budget", bad)


def test_a_point_costs_more_with_more_packets(plan: Plan) -> None:
    rates = {point.settings["switch:receiver"]["rate"]: point for point in plan.points}
    assert cost_ms(rates[10**9]) > cost_ms(rates[10**7]) > 0
