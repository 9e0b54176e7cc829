# SPDX-License-Identifier: Apache-2.0
"""The scorecard: what it says, what it exits with, and its files."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from testctl.papers import Scorecard, check_out, load_papers, print_scorecard, write_scorecard
from testctl.plan import Claim, Judgement, Ours
from testctl.results import Run, RunPoint, run_digest
from testctl.results.verdict_file import VerdictFile
from testctl_agent.spec.errors import PlanError

GOOD = Claim(
    plan="halving",
    claim="32 KB takes <twice> as long",
    source="PRR & others, Figure 5",
    metric="completion_time_s",
    than="hosts.cc reno_prr",
    want="",
    published=2,
    within=0.25,
    ours=Ours(1.9, 1.8, 2.0, "", 2, 2),
    difference_percent=-5.0,
    verdict="reproduced",
    why="",
    found="",
)
DIFFERS = dataclasses.replace(GOOD, claim="64 KB too", verdict="differs", why="its second window hides it")
HOLDS = dataclasses.replace(
    GOOD, claim="no new packet", published="none until repair", within=None, verdict="holds", difference_percent=None
)
FAILS = dataclasses.replace(HOLDS, claim="it stalls", verdict="fails", why="there is no jitter")
LOST = dataclasses.replace(GOOD, claim="64 MB too", verdict="not measured", ours=Ours(selected=1), found="point a is x")
TAKEN = dataclasses.replace(LOST, claim="on 6.1", ours=Ours(), found="no point of this run meets its `when`")


def run_of(
    claims: Sequence[Claim], verdict: str = "pass", expectations: Sequence[Any] = (), plan: str = "halving"
) -> Run:
    judged = Judgement.from_json({"verdict": verdict})
    point = RunPoint(
        Path("p"), "ab" * 6, (), verdict, "why so", "d", 1.0, 1.0, {}, VerdictFile("ab" * 6, judged, judged)
    )
    summary = {
        "plan": plan,
        "digest": "1" * 64,
        "expectations": list(expectations),
        "claims": json.loads(json.dumps([claim.to_json() for claim in claims])),
    }
    return Run(Path("/results") / f"20260131T120000Z-{plan}", summary, (point,))


def card_of(*claims: Claim, **how: Any) -> Scorecard:
    return Scorecard([run_of(claims, **how)], "2026-01-31T12:00:00+00:00", 61.5, {"testctl": "0.1.0"})


def expectation(name: str, verdict: str) -> dict[str, Any]:
    return {"name": name, "verdict": verdict, "detail": "0 of 1 point passes", "points": []}


@pytest.mark.parametrize(
    ("card", "code", "said"),
    [
        (card_of(GOOD, HOLDS), 0, ""),
        (card_of(GOOD, DIFFERS, FAILS), 0, ""),
        (card_of(dataclasses.replace(DIFFERS, why="")), 1, "halving: 64 KB too: differs, and its `why` is missing"),
        (card_of(dataclasses.replace(FAILS, why="")), 1, "halving: it stalls: fails, and its `why` is missing"),
        (card_of(LOST), 1, "halving: 64 MB too: point a is x"),
        (card_of(GOOD, TAKEN), 0, ""),
        (card_of(FAILS, verdict="fail", expectations=[expectation(FAILS.claim, "fail")]), 0, ""),
        (card_of(GOOD, verdict="fail", expectations=[expectation("sound", "fail")]), 1,
         "halving: sound: 0 of 1 point passes"),
        (card_of(GOOD, verdict="fail", expectations=[expectation(GOOD.claim, "fail")]), 1,
         f"halving: {GOOD.claim}: 0 of 1 point passes"),
        (card_of(GOOD, verdict="broken"), 3, f"halving: point {'ab' * 6} is broken: why so"),
        (card_of(GOOD, expectations=[expectation("sound", "invalid")]), 3, "halving: sound: 0 of 1 point passes"),
    ],
)  # fmt: skip
def test_exit_codes(card: Scorecard, code: int, said: str) -> None:
    assert card.exit_code == code
    assert [*card.broken, *card.open] == ([said] if said else [])


def test_the_digest_covers_every_plan() -> None:
    runs = [run_of([GOOD]), run_of([HOLDS], plan="other")]
    card = Scorecard(runs, "", 1.0, {})
    assert card.digest == run_digest([("halving", "1" * 64), ("other", "1" * 64)])
    assert card.digest == Scorecard(runs[::-1], "x", 2.0, {}).digest
    assert card.digest != Scorecard(runs[:1], "", 1.0, {}).digest


def printed(card: Scorecard, written: Sequence[Path] = ()) -> list[str]:
    out = io.StringIO()
    print_scorecard(card, written, Console(file=out, width=80))
    return [re.sub(r"\s{2,}", "  ", line.rstrip()) for line in out.getvalue().splitlines()]


def test_plain_lines() -> None:
    lines = printed(card_of(GOOD, DIFFERS, HOLDS, FAILS, LOST), [Path("/x/scorecard.html")])
    row = next(line for line in lines if line.lstrip().startswith(GOOD.claim))
    assert row.split("  ")[-5:] == ["2× ± 25%", "1.9× (1.8× to 2×)", "2", "-5.0%", "✓ reproduced"]
    assert "≠ differs  64 KB too  its second window hides it" in lines
    assert "✗ fails  it stalls  there is no jitter" in lines
    assert "? not measured  64 MB too  point a is x" not in lines
    assert "✗ to explain  halving: 64 MB too: point a is x" in lines
    assert lines[-3] == ("1 reproduced  1 differs  1 holds  1 fails  1 not measured  of 5 claims, 1 plans, in 61.5 s")
    assert lines[-2].startswith("digest  ")
    assert lines[-1] == "html  /x/scorecard.html"


def test_the_files(tmp_path: Path) -> None:
    zero = dataclasses.replace(GOOD, claim="zero", published=0, difference_percent=None, ours=Ours(0, 0, 0, "", 1, 1))
    far = dataclasses.replace(DIFFERS, claim="far", ours=Ours(90, 80, 99, "", 2, 2), difference_percent=4400.0)
    below = dataclasses.replace(far, claim="below", ours=Ours(-1, -2, 0, "", 2, 2), difference_percent=-150.0)
    card = card_of(GOOD, DIFFERS, HOLDS, FAILS, LOST, TAKEN, zero, far, below)
    page, figure, data = write_scorecard(card, tmp_path / "card")
    assert json.loads(data.read_text(encoding="utf-8"))["claims"] == [claim.to_json() for claim in card.claims]
    assert json.loads(data.read_text(encoding="utf-8"))["digest"] == card.digest
    assert figure.read_bytes().startswith(b"\x89PNG")
    drawn = figure.with_suffix(".svg").read_text(encoding="utf-8")
    for words in ("32 KB takes &lt;twice&gt; as long", "not measured", "no ratio: 0 was published", "≠ differs", "1×"):
        assert f">{words}<" in drawn
    text = page.read_text(encoding="utf-8")
    assert "32 KB takes &lt;twice&gt; as long" in text
    assert "<twice>" not in text
    assert "its second window hides it" in text
    assert "../results/20260131T120000Z-halving/report.html#/run/20260131T120000Z-halving" in text
    before = figure.read_bytes()
    write_scorecard(card, tmp_path / "card")
    assert figure.read_bytes() == before


def test_only_one_kind_of_claim_is_drawn_too(tmp_path: Path) -> None:
    for number, card in enumerate((card_of(GOOD), card_of(HOLDS))):
        assert write_scorecard(card, tmp_path / str(number))[1].stat().st_size > 1000


def test_a_scorecard_is_not_overwritten(tmp_path: Path) -> None:
    check_out(tmp_path / "card", False)
    write_scorecard(card_of(GOOD), tmp_path / "card")
    check_out(tmp_path / "card", True)
    with pytest.raises(PlanError, match=r"scorecard\.json: the scorecard exists already"):
        check_out(tmp_path / "card", False)


PLAN = """\
topology: pair
flows: {bulk: sender -> receiver}
tuples: [[hosts, kernel, "6.12"], [bulk, bytes, 1MB]]
"""


def test_the_plans_of_the_project_are_found() -> None:
    assert {"rate_limiter", "rfc6937_single_loss", "rfc9937_figures"} <= {plan.name for plan in load_papers([])}


def test_bad_plans_are_all_named(tmp_path: Path) -> None:
    files = [tmp_path / "a" / "x.yaml", tmp_path / "b" / "x.yaml", tmp_path / "y.yaml"]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text(PLAN, encoding="utf-8")
    files[0].write_text(PLAN + "expect: [{metric: jain, paper: {source: s, published: 1}}]\n", encoding="utf-8")
    with pytest.raises(PlanError) as caught:
        load_papers([*files, tmp_path / "none.yaml"])
    misspelt = PLAN + "allow: [{rule: ack-every-other, reason: it is}]\n"
    (tmp_path / "rule.yaml").write_text(misspelt, encoding="utf-8")
    with pytest.raises(PlanError, match="no rule named ack-every-other"):
        load_papers([tmp_path / "rule.yaml"])
    claimless = "1:1: expect: want an entry with `paper:`, what a paper published; got none"
    assert str(caught.value).splitlines() == [
        f"{files[1]}: want plans of different names; {files[0]} is named x too",
        f"{files[1]}:{claimless}",
        f"{files[2]}:{claimless}",
        f"{tmp_path / 'none.yaml'}: can't read the plan: No such file or directory",
    ]


def test_every_point_on_one_kernel() -> None:
    for plan in load_papers([], kernel="6.1"):
        assert {t for point in plan.points for t in point.tuples if t[1] == "kernel"} == {("hosts", "kernel", "6.1")}
