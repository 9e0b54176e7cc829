# SPDX-License-Identifier: Apache-2.0
"""Estimates of time learn from what this machine has run."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.execution.pace import FILE, learn, pace
from testctl.metrics import metric_names
from testctl.plan import Plan, load_plan
from testctl.plan.cost import cost_ms
from testctl.results import PointResult, Run, RunWriter, load_run, write_point

PLAN = """\
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [bulk, duration, 1s]
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / FILE


def plan_of(tmp_path: Path, name: str) -> Plan:
    path = tmp_path / f"{name}.yaml"
    path.write_text(PLAN, encoding="utf-8")
    return load_plan(path, metrics=metric_names())


def made(tmp_path: Path, plan: Plan, times: float, verdict: str = "pass") -> Run:
    """A run whose points took so many times their estimate."""
    writer = RunWriter.create_at(tmp_path / f"{plan.name}-{times}-{verdict}", need=0)
    for point in plan.points:
        wall_s = times * cost_ms(point) / 1000
        write_point(writer.path, PointResult(point.to_json(), verdict, reason="" if verdict == "pass" else "why",
                                             wall_s=wall_s))  # fmt: skip
    return load_run(writer.path)


def test_a_machine_that_has_run_nothing_has_the_estimate_of_the_reference(tmp_path: Path) -> None:
    assert pace(plan_of(tmp_path, "a")) == (1.0, "")


def test_a_plan_that_was_run_has_its_own_pace_and_others_that_of_the_machine(tmp_path: Path) -> None:
    a, b, other = (plan_of(tmp_path, name) for name in ("a", "b", "other"))
    learn(a, made(tmp_path, a, 0.25))
    learn(b, made(tmp_path, b, 0.75))
    times, source = pace(a)
    assert times == pytest.approx(0.25, rel=0.01)
    assert source == "by its last run here"
    times, source = pace(other)
    assert times == pytest.approx(0.5, rel=0.01)
    assert source == "by the last runs here"
    learn(a, made(tmp_path, a, 2))
    assert pace(a)[0] == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("verdict", ["skip", "broken"])
def test_points_that_did_not_run_to_their_end_say_nothing(tmp_path: Path, cache: Path, verdict: str) -> None:
    plan = plan_of(tmp_path, "a")
    learn(plan, made(tmp_path, plan, 0.01, verdict))
    assert not cache.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a lab": 5}', '{"a lab": {"testbed": "lab", "took_s": 1.0, "estimate_s": 0.0}}']
)
def test_a_file_that_is_not_whole_is_left_out(tmp_path: Path, cache: Path, text: str) -> None:
    cache.parent.mkdir(mode=0o700)
    cache.write_text(text, encoding="utf-8")
    assert pace(plan_of(tmp_path, "a")) == (1.0, "")
