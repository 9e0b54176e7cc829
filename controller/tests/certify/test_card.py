# SPDX-License-Identifier: Apache-2.0
"""The scorecard: a cell's verdict and its reason, the exit code, and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testctl.certify.card import Card, Cell, cell_of, rules_cell
from testctl.certify.criteria import Criterion, load
from testctl.certify.page import check_out, render
from testctl.plan import Judgement
from testctl.results import Run, RunPoint
from testctl.results.verdict_file import VerdictFile
from testctl_agent.spec.errors import PlanError

PLAN = """
about: "RFC 9743, 5.1.3 (should): few packets are lost"
topology: pair
flows: {tested: sender -> receiver}
tuples:
  - [tested, cc, cubic]
  - [switch:receiver, rate, [10mbit, 20mbit]]
  - [tested, duration, 1s]
expect:
  - {name: few, metric: loss_rate, max: 0.02}
"""


@pytest.fixture
def criterion(tmp_path: Path) -> Criterion:
    (tmp_path / "loss.yaml").write_text(PLAN)
    (criterion,) = load([tmp_path / "loss.yaml"], "bbr", None, 0)
    return criterion


def run_of(criterion: Criterion, where: Path, *verdicts: str, found: float = 0.01) -> Run:
    judged = {verdict: Judgement.from_json({"verdict": verdict, "reason": f"{verdict}, as it is"})
              for verdict in verdicts}  # fmt: skip
    points = [
        RunPoint(where, point.id, point.tuples, verdict, f"{verdict}, as it is", "d", 1.0, 1.0,
                 {"tested": {"loss_rate": found}},
                 VerdictFile(point.id, judged[verdict], judged[verdict]))
        for point, verdict in zip(criterion.plan.points, verdicts, strict=True)
    ]  # fmt: skip
    worst = next((v for v in ("fail", "invalid") if v in verdicts), "pass")
    about = [point.id for point in points if point.verdict == worst][::-1]
    expectation = {"name": "few", "verdict": worst, "detail": "so many", "points": about, "metric": "loss_rate"}
    summary: dict[str, Any] = {"plan": "loss", "digest": "1" * 64, "expectations": [expectation]}
    where.mkdir(exist_ok=True)
    (where / "plan.yaml").write_text(PLAN)
    (where / "versions.json").write_text("{}")
    return Run(where, summary, tuple(points))


def card_of(**cells: Cell) -> Card:
    return Card(
        {name: [cell] for name, cell in cells.items()},
        "6.12.1",
        "2026-01-31T12:00:00+00:00",
        1.5,
        "testctl certify bbr --quick",
    )


@pytest.mark.parametrize(
    ("verdicts", "verdict", "why", "code"),
    [
        (("pass", "pass"), "pass", "few: loss_rate ≤ 0.02, found 0.01", 0),
        (("pass", "fail"), "fail", "few: so many", 1),
        (("fail", "fail"), "fail", "few: so many", 1),
        (("invalid", "pass"), "invalid", "few: so many", 3),
        (("broken", "pass"), "invalid", "broken, as it is", 3),
        (("skip", "skip"), "skip", "skip, as it is", 3),
        (("invalid", "fail"), "fail", "few: so many", 1),
    ],
)
def test_a_cell(
    criterion: Criterion, tmp_path: Path, verdicts: tuple[str, ...], verdict: str, why: str, code: int
) -> None:
    criterion = replace(criterion, level="MUST")
    run = run_of(criterion, tmp_path / "run", *verdicts)
    cell = cell_of(criterion, run)
    assert (cell.verdict, cell.why) == (verdict, (why,))
    assert next(point for point in run.points if point.id == cell.point).verdict in (verdict, "broken")
    if verdict == "fail":
        assert cell.point == [point.id for point in run.points if point.verdict == "fail"][-1], "the worst comes first"
    assert card_of(bbr=cell).exit_code == code


def test_an_expectation_that_no_single_point_can_fail_counts(criterion: Criterion, tmp_path: Path) -> None:
    """Of the quantifier `some`: each point passes, and the criterion is not met."""
    run = run_of(criterion, tmp_path / "run", "pass", "pass")
    (expectation,) = run.summary["expectations"]
    expectation |= {"verdict": "fail", "alone": True}
    some = replace(criterion, plan=replace(criterion.plan, expectations=()))
    cell = cell_of(some, run)
    assert (cell.verdict, cell.why, cell.by) == ("fail", ("few: so many",), "few")


def test_only_a_must_fails_the_command(criterion: Criterion, tmp_path: Path) -> None:
    cell = cell_of(criterion, run_of(criterion, tmp_path / "run", "fail", "pass"))
    assert card_of(bbr=cell).exit_code == 0
    assert card_of(bbr=cell).counts == {"fail": 1}


def test_points_of_others_do_not_count(criterion: Criterion, tmp_path: Path) -> None:
    first, second = criterion.plan.points
    run = run_of(criterion, tmp_path / "run", "pass", "fail")
    assert cell_of(replace(criterion, tested=frozenset({first.id})), run).verdict == "pass"
    assert cell_of(replace(criterion, tested=frozenset({second.id})), run).verdict == "fail"


def test_broken_rules_of_tcp_have_a_row_of_their_own(criterion: Criterion, tmp_path: Path) -> None:
    run = run_of(criterion, tmp_path / "run", "pass", "pass")
    cell = cell_of(criterion, run)
    kept = rules_cell([cell])
    assert (kept.verdict, kept.point) == ("pass", "")
    assert kept.why[0].endswith("rules is broken at 2 points")
    first, second = run.points
    broke = {"rules_violated": "slow-start-growth 3", "first_violation": "slow-start-growth: at 1 ms too many"}
    of = replace(run, points=(first, replace(second, verdict="fail", metrics={"tested": {"loss_rate": 0.01, **broke}})))
    cell = cell_of(criterion, of)
    assert cell.verdict == "pass", "few packets are lost all the same"
    row = rules_cell([cell])
    assert (row.verdict, row.point, row.criterion.level) == ("fail", second.id, "should")
    of_rule = "the rule slow-start-growth was broken by tested, 3 times (at 1 ms too many)"
    assert row.why == (f"at 1 of 2 points, such as one of loss: {of_rule}",)
    assert replace(card_of(bbr=cell), cells={"bbr": [cell, row]}).digest == card_of(bbr=cell).digest


def test_of_points_that_were_not_measured_no_rule_is_said_to_be_kept(criterion: Criterion, tmp_path: Path) -> None:
    row = rules_cell([cell_of(criterion, run_of(criterion, tmp_path / "run", "skip", "broken"))])
    assert (row.verdict, row.why) == ("skip", ("no point was measured",))
    row = rules_cell([cell_of(criterion, run_of(criterion, tmp_path / "run", "skip", "pass"))])
    assert (row.verdict, row.why[0].partition("broken ")[2]) == ("pass", "at 1 point")


def test_the_page_and_the_json(criterion: Criterion, tmp_path: Path) -> None:
    cell = cell_of(criterion, run_of(criterion, tmp_path / "run <b>", "pass", "pass"))
    card = card_of(bbr=cell, cubic=cell)
    page = render(card, tmp_path / "out")
    assert "Scorecard of bbr" in page
    assert "RFC 9743, 5.1.3 (should)" in page
    assert "Few packets are lost: 2 points." in page
    assert 'href="../run &lt;b&gt;/report.html#/run/run &lt;b&gt;/point/' in page
    assert "<script" not in page
    assert "<code>testctl certify bbr --quick</code>" in page
    document = json.loads(json.dumps(card.to_json()))
    (row,) = document["criteria"]
    assert list(row["results"]) == ["bbr", "cubic"]
    assert row["results"]["bbr"]["verdict"] == "pass"
    assert document["digest"] == card.digest != card_of(bbr=cell).digest
    assert "7.10" in document["not_covered"]


def test_where_a_scorecard_may_go(tmp_path: Path) -> None:
    (tmp_path / "scorecard.json").write_text("{}")
    check_out(tmp_path)
    (tmp_path / "other").write_text("")
    with pytest.raises(PlanError, match="want a new directory, or one with a scorecard alone; got something else"):
        check_out(tmp_path)
