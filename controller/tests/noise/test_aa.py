# SPDX-License-Identifier: Apache-2.0
"""What the A/A check makes of samples: pure, and the same for the same seed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from testctl.noise.aa_test import Check, Sample, check_of, judged, numbers_of
from testctl.noise.bootstrap import MIN, excess, spread
from testctl.plan import load_plan
from testctl.results import noise
from testctl_agent.spec.errors import PlanError, TestbedError

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples: [[hosts, cc, [cubic, reno]], [bulk, duration, 1s]]
expect: [{name: fast, metric: goodput_bps, min: 1}]
"""
CALM = [[100.0], [101.0], [99.0], [100.5], [99.5]]


def check(**other: object) -> Check:
    plan = load_plan(PLAN)
    return replace(check_of(plan, "1,2,4", 5, metrics=["throughput_bps"]), **other)  # type: ignore[arg-type]


def samples(rounds: list[list[float]], verdict: str = "pass") -> list[list[Sample]]:
    return [[(verdict, "" if verdict == "pass" else "why", {"bulk throughput_bps": v}) for v in one] for one in rounds]


def test_the_words_of_the_command_line() -> None:
    plan = load_plan(PLAN)
    asked = check_of(plan, "4,2", 5)
    assert (asked.jobs, asked.metrics, asked.point) == ((1, 2, 4), ("throughput_bps", "goodput_bps"), plan.points[0])
    assert check_of(plan, "1", 5, point=plan.points[1].id[:6]).point == plan.points[1]
    with pytest.raises(PlanError, match="--jobs: want numbers with commas between"):
        check_of(plan, "two", 5)
    with pytest.raises(PlanError, match="--jobs: want numbers from 1 to 256"):
        check_of(plan, "0,2", 5)
    with pytest.raises(PlanError, match="no point 'zzz'"):
        check_of(plan, "2", 5, point="zzz")
    with pytest.raises(PlanError, match="--metric: want a metric's name, see testctl metrics; got goodput_bp"):
        check_of(plan, "2", 5, metrics=["throughput_bps", "goodput_bp"])
    many = load_plan(PLAN.replace("1s]", f"[{', '.join(f'{n}s' for n in range(1, 10))}]]"))
    first = next(p.id[0] for p in many.points if sum(other.id[0] == p.id[0] for other in many.points) > 1)
    with pytest.raises(PlanError, match=f"--point: .* points '{first}'"):
        check_of(many, "2", 5, point=first)


def test_the_spread_is_the_coefficient_of_variation_with_a_seeded_interval() -> None:
    one = spread(CALM, 1, "x")
    assert (one.count, one.mean) == (5, 100)
    assert one.cv == pytest.approx(0.0079, abs=1e-4)
    assert one.cv_95 is not None
    assert one.cv_95[0] <= one.cv <= one.cv_95[1]
    assert spread(CALM, 1, "x") == one
    assert spread(CALM, 2, "x").cv_95 != one.cv_95
    assert spread([[0.0], [0.0]], 1, "x").cv is None


def test_a_mean_that_moved_is_an_excess_too() -> None:
    assert excess(CALM, CALM, 1, "x").ratio == pytest.approx(0.9, abs=0.02)  # n - 1 alone, n beside
    moved = excess(CALM, [[80.0, 80.0]] * 5, 1, "x")
    assert moved.ratio > 20
    assert moved.ratio_95[0] > 2
    steady = [[5.0]] * 3
    assert excess(steady, [[5.0 * (1 + MIN / 2)]] * 3, 1, "x").ratio == 1


def test_as_many_at_once_as_do_no_harm() -> None:
    wild = [[70.0, 130.0, 60.0, 140.0]] * 5
    rounds = {1: samples(CALM), 2: samples([[v[0], v[0]] for v in CALM]), 4: samples(wild)}
    said = judged(check(), rounds)
    assert said["most_at_once"] == 2
    assert [level["may"] for level in said["beside"].values()] == [True, False]
    assert "bulk throughput_bps spreads" in said["beside"]["4"]["why"]
    assert list(said["alone"]) == ["bulk throughput_bps"]
    assert judged(check(), rounds) == said


def test_more_at_once_than_do_harm_are_not_allowed() -> None:
    """Four that happened to be calm prove nothing where two were not."""
    wild = [[70.0, 130.0]] * 5
    said = judged(check(), {1: samples(CALM), 2: samples(wild), 4: samples([[v[0]] * 4 for v in CALM])})
    assert [level["may"] for level in said["beside"].values()] == [False, True]
    assert said["most_at_once"] == 1


def test_a_point_that_does_not_pass_is_no_measurement() -> None:
    with pytest.raises(TestbedError, match="alone, is skip: why"):
        judged(check(jobs=(1,)), {1: samples(CALM, "skip")})
    said = judged(check(jobs=(1, 2)), {1: samples(CALM), 2: samples([[1.0, 1.0]], "invalid")})
    assert said["most_at_once"] == 1
    assert said["beside"]["2"]["why"] == "a point is invalid: why"


def test_the_newest_noise_of_this_machine_is_found(tmp_path: Path) -> None:
    said = {"testbed": "netns", "plan": "p", "repeat": 5, "alone": {}, "most_at_once": 1}
    here, there = noise.machine(), noise.machine() | {"node": "elsewhere"}
    for name, machine, started in (("a", here, "2026-01-01"), ("b", here, "2026-01-02"), ("c", there, "2026-01-03")):
        (tmp_path / name).mkdir()
        text = json.dumps(said | {"machine": machine, "started": started})
        (tmp_path / name / noise.FILE).write_text(text, encoding="utf-8")
    for name, text in (("d", "{"), ("e", "[" * 100_000), ("f", json.dumps(said | {"machine": here, "started": 3}))):
        (tmp_path / name).mkdir()
        (tmp_path / name / noise.FILE).write_text(text, encoding="utf-8")
    found = noise.newest(tmp_path, "netns")
    assert found is not None
    assert found["started"] == "2026-01-02"
    assert noise.newest(tmp_path, "lab") is None


def test_what_has_no_value_is_no_sample() -> None:
    found = numbers_of({"*": {"fairness": 1}, "bulk": {"a": 2.5, "b": math.nan, "c": math.inf, "d": None, "e": True}})
    assert found == {"fairness": 1.0, "bulk a": 2.5}
