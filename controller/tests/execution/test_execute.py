# SPDX-License-Identifier: Apache-2.0
"""The progress of a run shows the verdict of each point by the present plan."""

from __future__ import annotations

import errno
import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from rich.console import Console
from testctl.cli.last_failed import newest_run, of_failed
from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.execution.finished_run import finished
from testctl.execution.first_failure import FirstFailure
from testctl.execution.options import Options
from testctl.execution.point import run_one
from testctl.execution.pool import Finished
from testctl.execution.run import run_plan
from testctl.metrics import metric_names
from testctl.plan import Plan, Point, load_plan
from testctl.report import Progress, prepared, print_place, print_summary, write_report
from testctl.report import write as writing
from testctl.results import Run, RunPoint, layout, load_run
from testctl.results.work import WORK
from testctl.serve.runs import Runs
from testctl.testbeds.ready import ReadyTestbed
from testctl_agent.spec.errors import PlanError

LOSS = Path(__file__).parents[1] / "metrics" / "fixtures" / "loss"

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [bulk, duration, 1s]
allow:
  - {rule: rto-first-segment, reason: the recorded hosts had other settings}
  - {rule: sack-present, reason: the recorded hosts had no SACK}
expect:
"""
ALONE = "  - {name: something arrives, metric: throughput_bps, min: %s}\n"
COMPARED = "  - {name: as reno, metric: throughput_bps, at_least: 0.5, than: {hosts.cc: reno}}\n"


@dataclass(frozen=True)
class Recorded:
    """Every point is the recorded one of a fixture."""

    def code_key(self, point: Point) -> str:
        return "recorded"

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        shutil.copytree(LOSS / "raw", workdir, dirs_exist_ok=True)
        asked = PointSpec.from_json(json.loads((LOSS / "point.json").read_text(encoding="utf-8")))
        outcome = Outcome.from_json(json.loads((LOSS / "raw" / "outcome.json").read_text(encoding="utf-8")))
        return replace(asked, id=point.id, tuples=point.tuples), outcome


class Here:
    """A pool that works on the points itself, one by one."""

    def work(self, testbed: ReadyTestbed, points: Iterator[Point], run: Path, keep_captures: bool) -> Finished:
        for point in points:
            yield point, *run_one(testbed, point, run, keep_captures)


def plan_of(expect: str) -> Plan:
    return load_plan(PLAN + expect, metrics=metric_names())


def go(
    where: Path, name: str, expect: str, *, resume: bool = False, fail_fast: bool = False, plan: Plan | None = None
) -> tuple[list[str], Run]:
    """(the verdicts as the terminal showed them one by one, the run)."""
    out = io.StringIO()
    plan = plan or plan_of(expect)
    progress = Progress(len(plan.points), Console(file=out, width=200))
    policy = FirstFailure(plan) if fail_fast else None
    options = Options(where, where / name, resume=resume)
    run = run_plan(plan, Recorded(), options, progress, pool=Here(), policy=policy)
    return [re.split(r" \d", line.partition(" … ")[2])[0] for line in out.getvalue().splitlines() if " … " in line], run


def test_a_point_that_fails_by_itself_is_said_to_fail_at_once(tmp_path: Path) -> None:
    said, run = go(tmp_path, "one", ALONE % "1000gbit")
    assert said == [point.verdict for point in run.points] == ["fail", "fail"]
    said, run = go(tmp_path, "two", ALONE % "1")
    assert said == [point.verdict for point in run.points] == ["pass", "pass"]


def test_points_are_drawn_when_they_end_and_the_report_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(writing, "point_data", lambda point: drawn.append(point.id))
        _, run = go(tmp_path, "one", ALONE % "1")
    assert drawn == []
    page = (run.path / layout.REPORT).read_bytes()
    assert all(f'id="d-{point.id}"'.encode() in page for point in run.points)
    assert write_report(run.path).read_bytes() == page
    assert not (run.path / WORK).exists()


def test_a_point_that_can_not_be_prepared_is_drawn_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "point_data", lambda point: 1 // 0)
    said, run = go(tmp_path, "one", ALONE % "1")
    assert said == ["pass", "pass"]
    assert f'id="d-{run.points[0].id}"' in (run.path / layout.REPORT).read_text(encoding="utf-8")


def test_of_many_points_no_more_are_prepared_than_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    true = prepared.point_data

    def noted(point: RunPoint) -> str | None:
        made.append(point.id)
        return true(point)

    monkeypatch.setattr(prepared, "MOST", 1)
    monkeypatch.setattr(writing, "DRAWN", 1)
    monkeypatch.setattr(prepared, "point_data", noted)
    monkeypatch.setattr(writing, "point_data", lambda point: 1 // 0)  # nothing is left for the end
    _, run = go(tmp_path, "one", ALONE % "1")
    assert made == [run.points[0].id]
    page = (run.path / layout.REPORT).read_text(encoding="utf-8")
    assert [f'id="d-{point.id}"' in page for point in run.points] == [True, False]


def test_a_point_that_is_compared_with_another_is_not_judged_until_both_are_there(tmp_path: Path) -> None:
    said, run = go(tmp_path, "one", COMPARED)
    assert said == ["not judged yet", "pass"]  # reno is compared with nothing
    assert [point.verdict for point in run.points] == ["pass", "pass"]


def test_a_run_in_progress_shows_what_is_known_of_its_points(tmp_path: Path) -> None:
    """In `testctl show` and serve: a point that fails by itself has failed, with the reason; none has passed."""
    plan = plan_of(ALONE % "1000gbit")
    seen = []

    class Looking(Here):
        def work(self, testbed: ReadyTestbed, points: Iterator[Point], run: Path, keep_captures: bool) -> Finished:
            for done in super().work(testbed, points, run, keep_captures):
                yield done
                (line,) = Runs(tmp_path).lines()
                shown = Runs(tmp_path).page(run.name)["points"]
                out = io.StringIO()
                print_summary(load_run(run), Console(file=out))
                seen.append(
                    ([line["counts"][name] for name in ("pass", "fail", "not judged yet")], shown, out.getvalue())
                )

    for expect in (ALONE % "1000gbit", ALONE % "1"):
        plan = plan_of(expect)
        progress = Progress(len(plan.points), Console(quiet=True))
        run = run_plan(plan, Recorded(), Options(tmp_path, tmp_path / "20260101T000000Z-x"), progress, pool=Looking())
        shutil.rmtree(run.path)
    fails, more, passes, _ = seen
    assert (fails[0], more[0], passes[0]) == ([0, 1, 0], [0, 2, 0], [0, 0, 1])
    assert [point["verdict"] for point in fails[1]] == ["fail"]
    assert "something arrives: throughput_bps of bulk: want at least" in fails[1][0]["reason"]
    assert [point["verdict"] for point in passes[1]] == ["not judged yet"]
    assert "✗ fail" in fails[2]
    assert "something arrives: throughput_bps of bulk: want at least" in fails[2]
    assert "1 not judged yet  of 1" in passes[2]


def test_a_point_taken_over_is_shown_as_this_plan_judges_it(tmp_path: Path) -> None:
    go(tmp_path, "one", ALONE % "1")
    said, run = go(tmp_path, "two", ALONE % "1000gbit", resume=True)
    assert all(point.verdict_file.reused_from for point in run.points)
    assert said == [point.verdict for point in run.points] == ["fail", "fail"]


def test_verdicts_are_there_before_the_report_is_drawn(tmp_path: Path) -> None:
    plan = plan_of(ALONE % "1000gbit")
    out = io.StringIO()
    drawn: list[str] = []

    def judged(run: Run) -> Callable[[str], None]:
        assert not (run.path / "report.html").exists()
        print_summary(run, Console(file=out))
        return drawn.append

    progress = Progress(len(plan.points), Console(quiet=True))
    run = run_plan(plan, Recorded(), Options(tmp_path, tmp_path / "one"), progress, pool=Here(), judged=judged)
    lines = out.getvalue().splitlines()
    assert "2 fail  of 2" in lines[-2]
    assert lines[-1] == f"digest  {run.digest}"
    assert ".in-progress" not in out.getvalue()
    assert drawn == [point.id for point in plan.points]
    assert (run.path / "report.html").exists()
    place = io.StringIO()
    print_place(run, Console(file=place))
    assert place.getvalue() == f"report  {run.path / 'report.html'}\n"


def test_no_point_is_begun_after_the_first_failure(tmp_path: Path) -> None:
    said, run = go(tmp_path, "one", ALONE % "1000gbit", fail_fast=True)
    plan = plan_of(ALONE % "1000gbit")
    assert (said, [point.id for point in run.points]) == (["fail"], [plan.points[0].id])
    assert run.summary["fail_fast"] == {"failed": plan.points[0].id, "not_run": [plan.points[1].id]}
    out = io.StringIO()
    print_summary(run, Console(file=out))
    assert "stopped  1 point was not begun after the first failure; to run the rest, give --resume" in out.getvalue()
    said, run = go(tmp_path, "two", ALONE % "1000gbit", fail_fast=True, resume=True)
    assert said == ["fail", "fail"]
    assert [bool(point.verdict_file.reused_from) for point in run.points] == [True, False]
    assert run.summary["fail_fast"]["not_run"] == []


def test_without_a_failure_every_point_is_begun(tmp_path: Path) -> None:
    said, run = go(tmp_path, "one", ALONE % "1", fail_fast=True)
    assert said == ["pass", "pass"]
    assert run.summary["fail_fast"] == {"failed": "", "not_run": []}


@dataclass(frozen=True)
class OnTwoKernels(Recorded):
    """Of one series, as a plan may name them."""

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        spec, outcome = super().run(point, workdir)
        return spec, replace(outcome, kernel=f"6.12.{94 if ('hosts', 'cc', 'reno') in point.tuples else 117}")


def test_every_kernel_of_a_series_is_among_the_versions(tmp_path: Path) -> None:
    plan = plan_of(ALONE % "1")
    progress = Progress(2, Console(file=io.StringIO()))
    run = run_plan(plan, OnTwoKernels(), Options(tmp_path, tmp_path / "run"), progress, pool=Here())
    assert run.versions["kernels"] == {"6.12": "6.12.117, 6.12.94"}


def test_a_run_that_can_not_begin_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr("testctl.execution.run.begin_work", full)
    with pytest.raises(OSError, match="no space"):
        go(tmp_path, "run", ALONE % "1")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_run_is_not_taken_for_one_of_the_plan(tmp_path: Path) -> None:
    _, run = go(tmp_path, "20260101T000000Z-plan", ALONE % "1")
    plan, options = plan_of(ALONE % "1"), Options(tmp_path)
    there = finished(plan, Recorded(), options)
    assert there is not None
    assert there.path == run.path
    shutil.copytree(run.path, tmp_path / "20260102T000000Z-plan")
    (tmp_path / "20260102T000000Z-plan" / "points" / plan.points[0].id / "point.json").write_text("{")
    again = finished(plan, Recorded(), options)
    assert again is not None
    assert again.path == run.path


def test_the_points_that_failed_in_an_earlier_run(tmp_path: Path) -> None:
    plan = plan_of(ALONE % "1")
    _, run = go(tmp_path, "20260101T000000Z-plan", ALONE % "1")
    assert newest_run(tmp_path, plan.name).path == run.path
    chosen, words = of_failed(plan, run)
    assert (chosen.points, words) == ((), "no point of 20260101T000000Z-plan failed: nothing to run")
    only = "  - {name: many, metric: throughput_bps, min: 1000gbit, when: {hosts.cc: cubic}}\n"
    _, run = go(tmp_path, "20260102T000000Z-plan", only)
    assert newest_run(tmp_path, plan.name).path == run.path
    chosen, words = of_failed(plan_of(only), run)
    assert [point.id for point in chosen.points] == [plan.points[0].id]
    assert words == "1 of 2 points failed in 20260102T000000Z-plan"
    said, again = go(tmp_path, "again", only, plan=chosen)
    assert (said, len(again.points)) == (["fail"], 1)
    chosen, words = of_failed(plan_of(only + COMPARED), run)
    assert (len(chosen.points), len(chosen.expectations)) == (2, 2)
    assert words.endswith("; 1 more are run because they are compared with these")


def test_points_of_an_expectation_of_some_failed_too(tmp_path: Path) -> None:
    some = "  - {name: many, metric: throughput_bps, min: 1000gbit, quantifier: some}\n"
    _, run = go(tmp_path, "20260101T000000Z-plan", some)
    assert [point.verdict for point in run.points] == ["pass", "pass"]
    assert len(of_failed(plan_of(some), run)[0].points) == 2


def test_failed_points_that_the_plan_has_no_more(tmp_path: Path) -> None:
    _, run = go(tmp_path, "20260101T000000Z-plan", ALONE % "1000gbit")
    other = load_plan((PLAN + ALONE % "1").replace("1s", "2s"), metrics=metric_names())
    with pytest.raises(PlanError, match="none of its 2 is one"):
        of_failed(other, run)
    with pytest.raises(PlanError, match="--last-failed: want a complete run of none"):
        newest_run(tmp_path, "none")


MUCH = "  - {name: as reno, metric: throughput_bps, at_least: 5, than: {hosts.cc: %s}}\n"


def test_a_comparison_fails_as_soon_as_both_points_are_there(tmp_path: Path) -> None:
    """Each is the same recorded point, so none has five times the throughput of the other."""
    said, run = go(tmp_path, "one", MUCH % "reno")
    assert said == ["not judged yet", "pass", "fail, compared with cc=reno"]
    assert [point.verdict for point in run.points] == ["fail", "pass"]
    said, run = go(tmp_path, "two", MUCH % "cubic")
    assert said == ["pass", "fail"]
    assert [point.verdict for point in run.points] == ["pass", "fail"]


def test_such_a_failure_stops_the_run(tmp_path: Path) -> None:
    text = PLAN.replace("[cubic, reno]", "[cubic, reno, bbr]") + MUCH % "reno"
    said, run = go(tmp_path, "one", "", fail_fast=True, plan=load_plan(text, metrics=metric_names()))
    assert said == ["not judged yet", "pass", "fail, compared with cc=reno"]
    assert len(run.points) == 2
    assert len(run.summary["fail_fast"]["not_run"]) == 1
