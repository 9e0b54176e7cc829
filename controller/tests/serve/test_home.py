# SPDX-License-Identifier: Apache-2.0
"""The home page's plans: last verdict, shares that passed, what changed since the run before, and progress."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testctl.report.night import NOT_HERE
from testctl.serve import listing
from testctl.serve.home import Home, worst
from testctl.serve.listing import Unknown
from testctl.serve.plans import Plans
from testctl.serve.runs import Runs
from testctl.serve.trend import Trends
from testctl_agent.spec.errors import PlanError

from controller.tests.serve.conftest import make_run
from controller.tests.support.synthetic_sweep import make_sweep

Made = Callable[..., Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Makes a complete run of a day: "other" has a digest and a verdict that differ at its first point."""

    def make(day: int, *, other: bool = False, **entries: Any) -> Path:
        run = make_run(tmp_path, day, {"loss": "fail" if other else "pass", "ack_owed": "pass"})
        path = run / "summary.json"
        summary = json.loads(path.read_text(encoding="utf-8"))
        points = summary.pop("points")
        if other:
            points[0]["digest"] = "another"
        path.write_text(json.dumps(summary | {"points": points} | entries, indent=1), encoding="utf-8")
        return run

    return make


def test_a_plan_has_the_verdict_of_its_newest_run_and_the_shares_that_passed(tmp_path: Path, made: Made) -> None:
    made(1)
    last = made(2, other=True)
    make_run(tmp_path, 3, {"loss": "pass"}, "sound")
    failing, sound = Home(Runs(tmp_path)).lists()["plans"]
    assert (failing["plan"], failing["verdict"], failing["last"]["name"], failing["runs"]) == (
        "two",
        "fail",
        last.name,
        2,
    )
    assert failing["shares"] == [{"share": 1.0, "verdict": "pass"}, {"share": 0.5, "verdict": "fail"}]
    assert (sound["plan"], sound["verdict"]) == ("sound", "pass")


def test_points_with_another_verdict_or_digest_are_counted(tmp_path: Path, made: Made) -> None:
    first = made(1)
    home = Home(Runs(tmp_path))
    assert home.since(first.name) == {"since": None, "text": "the first run", "worse": False, "points": [], "share": ""}
    second = made(2, other=True)
    assert home.since(second.name) == {
        "since": first.name, "text": "1 new failure, 1 of 2 points with another digest", "worse": True, "share": "",
        "points": ["loss"],
    }  # fmt: skip
    with pytest.raises(Unknown):
        home.since("none")


def test_points_of_the_last_runs_are_found_by_value_verdict_and_reason(tmp_path: Path, made: Made) -> None:
    made(1)
    last = made(2, other=True)
    sound = make_run(tmp_path, 3, {"loss": "pass"}, "sound")
    home = Home(Runs(tmp_path))
    assert home.points("what OWED") == [{"plan": "two", "run": last.name, "count": 1}]
    assert home.points("fail") == [{"plan": "two", "run": last.name, "count": 1}]
    assert [one["run"] for one in home.points("loss")] == [last.name, sound.name]
    assert home.points("cubic") == [], "it is not swept"
    assert home.points("  ") == home.points("no such word") == []
    summary = json.loads((last / "summary.json").read_text(encoding="utf-8"))
    (last / "summary.json").write_text(json.dumps(summary | {"points": [{"id": 7}]}), encoding="utf-8")
    assert sound.name in [one["run"] for one in Home(Runs(tmp_path)).points("loss")]


def test_as_many_repeats_are_found_as_on_the_page_of_their_run(tmp_path: Path) -> None:
    run = make_sweep(tmp_path, repeat=3)
    runs, words = Runs(tmp_path), ["reno", "30ms", "repeat", "2"]
    points = runs.page(run.name)["points"]
    texts = [" ".join(point[key] for key in ("id", "name", "verdict", "reason")) for point in points]
    count = sum(all(word in text for word in words) for text in texts)
    assert Home(runs).points(" ".join(words)) == [{"plan": "sweep", "run": run.name, "count": count}]
    assert count


def test_a_real_clock_has_other_digests_each_time(tmp_path: Path, made: Made) -> None:
    made(1, testbed="netns")
    second = made(2, other=True, testbed="netns")
    assert Home(Runs(tmp_path)).since(second.name)["text"] == "1 new failure"
    third = made(3, other=True, testbed="netns")
    assert Home(Runs(tmp_path)).since(third.name)["text"] == "no other verdict"


def test_a_run_that_is_removed_takes_nothing_else_away(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = map(made, (1, 2, 3))
    runs = Runs(tmp_path)
    home, listed = Home(runs), runs.lines()
    home.lists()
    shutil.rmtree(second)
    assert home.since(third.name)["since"] == first.name
    monkeypatch.setattr(runs, "lines", lambda: listed)  # it goes while an answer is made
    plan = Plans(runs).page("two", "throughput_bps", "")
    assert [run["name"] for run in plan["runs"]] == [first.name, third.name]
    kind = listing._kind
    monkeypatch.setattr(listing, "_kind", lambda path: stat.S_IFDIR if path.name == "points" else kind(path))
    trend = Trends(runs).trend("loss", "throughput_bps", "")
    assert [run["name"] for run in trend["runs"]] == [first.name, third.name]


def test_a_run_is_compared_with_one_of_the_same_set(tmp_path: Path, made: Made) -> None:
    first = made(1)
    path = made(2) / "summary.json"
    path.write_text(
        json.dumps({"overrides": ["a.b=1"]} | json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8"
    )
    assert Home(Runs(tmp_path)).since(made(3).name)["since"] == first.name


def test_a_night_says_since_which_and_how_many_of_all_points(tmp_path: Path, made: Made) -> None:
    first = made(1)
    made(2)
    not_run = [{"id": name, "tuples": []} for name in "abc"]
    night = made(3, nightly={"since": first.name, "not_run": not_run, "ended_by": "the clock"})
    home = Home(Runs(tmp_path))
    found = home.since(night.name)
    wanted = {"since": first.name, "text": "no change", "share": "2 of 5 points were run: the time ran out"}
    assert {name: found[name] for name in wanted} == wanted
    said = Runs(tmp_path).page(night.name)["night"]
    assert {name: said[name] for name in wanted} == wanted, "its page says the same"
    odd = made(4, nightly={"since": "../../gone", "not_run": 7})
    assert (home.since(odd.name)["since"], home.since(odd.name)["text"]) == (None, NOT_HERE)


def test_a_night_names_the_points_that_the_night_before_had(tmp_path: Path, made: Made) -> None:
    first = made(1)
    path = made(2) / "summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    left = summary["points"].pop()
    entry = {"since": first.name, "not_run": [left, {"id": "new", "tuples": []}], "ended_by": "the estimate"}
    path.write_text(json.dumps(summary | {"nightly": entry}), encoding="utf-8")
    said = Runs(tmp_path).page(path.parent.name)["night"]
    assert said["text"] == "no change in the 1 point of both, 1 point less"
    assert said["share"] == "1 of 3 points were run: more were not expected to fit into the time"
    assert said["less"] == [left["id"]]
    path.write_text(json.dumps(summary | {"points": [left | {"id": "new"}], "nightly": entry}), encoding="utf-8")
    said = Runs(tmp_path).page(path.parent.name)["night"]
    assert said["text"] == "no point of the run before, 2 points less"


def test_a_point_whose_tuples_are_none_is_refused(tmp_path: Path, made: Made) -> None:
    path = made(1) / "summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    summary["points"][0]["tuples"] = [["hosts", "cc"]]
    path.write_text(json.dumps(summary), encoding="utf-8")
    with pytest.raises(PlanError, match=r"summary\.json: want points as testctl writes them"):
        Home(Runs(tmp_path)).since(path.parent.name)


@pytest.fixture
def going(tmp_path: Path) -> Path:
    """A run in progress, begun 20 s ago: one of three points is finished, since 10 s."""
    run = make_run(tmp_path, 1, {"loss": "pass"})
    begun = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - 20))
    path = run.rename(tmp_path / f"{begun}-two.in-progress")
    (path / "summary.json").unlink()
    expanded = {"points": [{"id": name} for name in ("loss", "a", "b")]}
    (path / "plan.expanded.json").write_text(json.dumps(expanded), encoding="utf-8")
    os.utime(path / "points" / "loss", (time.time() - 10,) * 2)
    return path


def test_a_run_in_progress_says_how_many_of_how_many_and_how_long(tmp_path: Path, going: Path) -> None:
    (line,) = Runs(tmp_path).lines()
    assert (line["progress"]["done"], line["progress"]["points"]) == (1, 3)
    assert line["progress"]["left_s"] is not None
    assert Runs(tmp_path).page(going.name)["progress"]["points"] == 3


def test_a_stopped_run_has_no_time_left(tmp_path: Path, going: Path) -> None:
    os.utime(going / "points" / "loss", (time.time() - 9000,) * 2)
    (line,) = Runs(tmp_path).lines()
    assert line["progress"]["left_s"] is None


def test_a_plans_points_that_changed_are_first(tmp_path: Path, made: Made) -> None:
    made(1)
    run = made(2)
    path = run / "summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    summary["points"][1]["verdict"] = "fail"
    path.write_text(json.dumps(summary, indent=1), encoding="utf-8")
    points = Plans(Runs(tmp_path)).page("two", "throughput_bps", "")["points"]
    assert [(point["id"], point["differs"]) for point in points] == [("ack_owed", "verdict"), ("loss", "")]


def test_the_verdict_of_a_run_is_its_worst() -> None:
    assert worst({"pass": 3, "skip": 1}) == "skip"
    assert worst({"pass": 3, "fail": 0}) == "pass"
    assert worst({}) == ""
