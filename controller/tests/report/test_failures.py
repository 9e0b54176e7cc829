# SPDX-License-Identifier: Apache-2.0
"""What failing points share, and failures first: in the terminal and on the page."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console
from testctl.report import print_plots, print_summary
from testctl.report.failures import failure_lines, failures_first
from testctl.report.finding import finding
from testctl.report.run_page import Found, run_page
from testctl.report.sweep_choice import sweeps_of_run
from testctl.results import Run
from testctl.results.layout import UNJUDGED

from controller.tests.support.synthetic_sweep import make_sweep

SENTENCE = "3 of 34 points fail: all 3 with delay=30ms and buffer=15kB"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """36 points; those with a long delay and a small buffer fail, one is broken, one invalid."""
    return make_sweep(tmp_path_factory.mktemp("results"))


def test_a_sentence_for_each_verdict_that_several_points_have(run: Run) -> None:
    assert failure_lines(run.points) == [("fail", SENTENCE)]
    lost = [
        dataclasses.replace(point, verdict="broken") if ("hosts", "cc", "reno") in point.tuples else point
        for point in run.points
    ]
    assert failure_lines(lost) == [
        ("fail", "2 of 23 points fail: all 2 with delay=30ms and buffer=15kB"),
        ("broken", "13 of 36 points are broken: all 12 with cc=reno; 1 more"),
    ]
    every = [dataclasses.replace(point, verdict="invalid") for point in run.points]
    assert failure_lines(every) == [("invalid", "all 36 points are invalid")]
    assert failure_lines(run.points[:1]) == []


def test_failures_stand_first(run: Run) -> None:
    verdicts = [point.verdict for point in failures_first(run.points)]
    assert verdicts == ["fail"] * 3 + ["invalid", "broken"] + ["pass"] * 31
    passed = [point.id for point in run.points if point.verdict == "pass"]
    assert [point.id for point in failures_first(run.points)][5:] == passed


def test_the_terminal_says_it_once_below_the_table(run: Run) -> None:
    out = io.StringIO()
    print_summary(run, Console(file=out))
    lines = out.getvalue().splitlines()
    assert [line.split()[1] for line in lines[:6]] == ["fail"] * 3 + ["invalid", "broken", "pass"]
    assert f"✗ fail  {SENTENCE}" in lines
    (expected,) = (line for line in lines if line.startswith("✗ fail  the link is used"))
    assert expected.count("got 0.25") == 1
    assert "0.97" in lines[6]  # the expected metric of a point that passes


def test_the_page_begins_with_what_was_found_and_has_failures_in_a_table(run: Run) -> None:
    page = run_page(Found(run.path, run.summary, run.points), run.plan_text)
    assert page["found"] == (
        '3 of 36 fail "the link is used": all 3 with delay=30ms and buffer=15kB; worst saturation 0.25, want ≥ 0.6;'
        " 1 invalid; 1 broken"
    )
    where = [["delay", "30ms"], ["buffer", "15kB"]]
    assert page["failures"] == [
        {"verdict": "fail", "count": "3 of 34", "more": 0,
         "rows": [{"share": "all 3", "where": where, "worst": "saturation 0.25, want ≥ 0.6"}]}
    ]  # fmt: skip
    assert page["axes"] == ["delay", "buffer", "cc"]
    (expected,) = page["expectations"]
    assert (expected["bound"], expected["found"], len(expected["points"])) == ("≥ 0.6", "0.25 … 0.325", 3)
    assert [one["verdict"] for one in page["reasons"]] == ["invalid", "broken"]


def test_a_failing_point_that_shares_nothing_has_a_row_of_its_own(run: Run) -> None:
    """And not "1 more"."""
    alone = next(point for point in run.points if point.verdict == "pass")
    points = [dataclasses.replace(point, verdict="fail") if point is alone else point for point in run.points]
    (table,) = run_page(Found(run.path, run.summary, points), run.plan_text)["failures"]
    where = dict(table["rows"][-1]["where"])
    assert (table["count"], table["rows"][-1]["share"], table["more"]) == ("4 of 34", "1", 0)
    assert [where[name] for name in ("cc", "delay", "buffer")] == [
        {param: value for _, param, value in alone.tuples}[name] for name in ("cc", "delay", "buffer")
    ]


def test_points_that_break_a_rule_say_which(run: Run) -> None:
    """The rule that most of them break, in the sentence; all of them in the table."""
    reasons = ["the rule sack-present was broken by bulk (at 1 ms); the rule kernel-counts was broken by bulk, 2 times"]
    reasons += ["the rule sack-present was broken by bulk, 9 times"] * 2
    points = [dataclasses.replace(point, verdict="pass", reason="") for point in run.points]
    points[:3] = [dataclasses.replace(p, verdict="fail", reason=why) for p, why in zip(points, reasons, strict=False)]
    page = run_page(Found(run.path, {**run.summary, "expectations": []}, points), run.plan_text)
    assert page["found"].startswith("3 of 36 fail and break the rule sack-present")
    worst = {part for row in page["failures"][0]["rows"] for part in row["worst"].split("; ")}
    assert worst == {"rule sack-present broken", "rule kernel-counts broken"}
    points[1] = dataclasses.replace(points[1], reason="the lab was late")
    page = run_page(Found(run.path, {**run.summary, "expectations": []}, points), run.plan_text)
    assert page["found"].startswith("3 of 36 fail, 2 of them break the rule sack-present")


def test_a_run_that_passes_says_so_with_what_its_expectations_found(run: Run) -> None:
    passing = [dataclasses.replace(p, verdict="pass") for p in run.points if ("switch", "delay", "10ms") in p.tuples]
    met = {**run.summary["expectations"][0], "verdict": "pass", "points": [point.id for point in passing]}
    page = run_page(Found(run.path, {**run.summary, "expectations": [met]}, passing), run.plan_text)
    assert (page["found"], page["failures"]) == ("all 9 points pass", [])
    (expected,) = page["expectations"]
    assert (expected["metric"], expected["bound"], expected["found"]) == ("saturation", "≥ 0.6", "0.65 … 0.97")
    assert run_page(Found(run.path, run.summary, run.points[:1]), "expect: {of: later}")["found"] == "its point passes"


def test_figures_in_the_terminal(run: Run) -> None:
    out = io.StringIO()
    print_plots(sweeps_of_run(run), Console(file=out))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines[0] == "saturation over switch.delay by switch.buffer for each hosts.cc"
    assert lines[1] == "hosts.cc cubic"
    assert lines[2].split() == ["switch.delay", "switch.buffer", "0", "0.97"]
    bars = {tuple(line.split()[-1:]): line.count("█") for line in lines[3:15]}
    assert bars[("0.97",)] == 50
    assert bars[("0.3",)] == 15
    gap = next(line for line in lines[16:] if line.strip().startswith("60kB") and line.endswith("–"))
    assert "█" not in gap
    assert "one point each; 2 of 36 points have no value: 1 invalid, 1 broken" in lines
    assert "throughput_bps by switch.delay" in lines
    out = io.StringIO()
    print_plots([], Console(file=out))
    assert out.getvalue() == "no figure: no parameter is swept, or no point has a value\n"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_figures_fit_the_terminal(run: Run, width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, color_system=None)
    print_plots(sweeps_of_run(run), console)
    assert all(len(line) <= width for line in out.getvalue().splitlines())


def test_points_that_nothing_judged_yet_do_not_pass(run: Run) -> None:
    points = run.points
    waiting = [dataclasses.replace(point, verdict=UNJUDGED) for point in points[:4]]
    assert finding(waiting, []) == "4 not judged yet"
    assert (
        finding([*waiting, dataclasses.replace(points[4], verdict="pass")], [])
        == "1 of 5 points pass; 4 not judged yet"
    )
    assert finding([dataclasses.replace(point, verdict="pass") for point in points[:2]], []) == "both points pass"
