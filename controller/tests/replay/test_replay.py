# SPDX-License-Identifier: Apache-2.0
"""What can't be replayed, and what a run's code and kernel are told apart by."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testctl.plan import load_plan
from testctl.replay.command import differences, point_of, replay
from testctl.replay.instruments import Instruments
from testctl.results import Run, RunPoint
from testctl.results.versions import collect_versions
from testctl_agent.spec.errors import PlanError

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [bulk, duration, 100ms]
  - [bulk, start, 5ms]
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run as it lies on disk, as far as is looked at before anything starts."""
    points = load_plan(PLAN).points
    (tmp_path / "plan.expanded.json").write_text(json.dumps({"points": [point.to_json() for point in points]}))
    (tmp_path / "versions.json").write_text(json.dumps(collect_versions()))
    found = [RunPoint(tmp_path, p.id, p.tuples, "pass", "", "", 1.0, 1.0, {}, {"code_key": "k-c-p"}) for p in points]
    return Run(tmp_path, {}, tuple(found))


def test_a_point_is_what_the_plan_made_of_it(run: Run) -> None:
    for point in load_plan(PLAN).points:
        again = point_of(run, point.id)
        assert replace(again, levels=point.levels).to_json() == point.to_json()
        assert again.flows[0]["options"]["start"] == 5_000_000


def test_a_run_elsewhere_is_refused(run: Run, tmp_path: Path) -> None:
    elsewhere = replace(run, summary={"testbed": "netns"})
    with pytest.raises(PlanError, match="ran on netns; only in the lab, in virtual time, is a point the same again"):
        replay(elsewhere, run.points[0].id, Instruments(), tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("expanded", "said"),
    [
        ({"points": []}, "want the point .*; it is not there"),
        ({"points": [{"id": None}]}, "points as testctl writes them"),
    ],
)
def test_a_plan_that_lost_its_point(run: Run, expanded: dict[str, Any], said: str) -> None:
    point = run.points[0].id
    for one in expanded["points"]:
        one["id"] = point
    (run.path / "plan.expanded.json").write_text(json.dumps(expanded))
    with pytest.raises(PlanError, match=said):
        point_of(run, point)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("k-c-p", ()),
        ("x-c-p", ("another kernel",)),
        ("k-x-x", ("other agents, tgen or first process of the lab", "another program of the switch")),
        ("k-c", ("another program of the switch",)),
    ],
)
def test_what_differs_from_the_run(run: Run, key: str, said: tuple[str, ...]) -> None:
    assert [word for word in differences(run, run.points[0], key) if "then" not in word] == list(said)


def test_versions_are_named_with_the_difference(run: Run) -> None:
    (run.path / "versions.json").write_text(json.dumps({**collect_versions(), "commit": "cafe"}))
    assert any(word.startswith("commit cafe then, ") for word in differences(run, run.points[0], "x-c-p"))
    assert differences(run, run.points[0], "k-c-p") == ()
