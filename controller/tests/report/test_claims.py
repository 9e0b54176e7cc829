# SPDX-License-Identifier: Apache-2.0
"""Papers' claims in the page of a run and in the terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from testctl.plan import Claim, Ours
from testctl.report import print_summary
from testctl.report.claims import show_difference, show_ours, show_published
from testctl.report.page import render_report
from testctl.results import Run, shapes
from testctl_agent.spec.untrusted import misfit

from controller.tests.report.reading import run_of
from controller.tests.support.refusal import refusal

CLAIM = Claim(
    plan="dctcp_htb",
    claim="timeouts are <long>",
    source="A paper, Figure 4",
    metric="timeout_length_mean_ms",
    than="",
    want="",
    published=200,
    within=0.1,
    ours=Ours(260.0, 250.0, 270.0, "", 2, 2),
    difference_percent=30.0,
    verdict="differs",
    why="ours is <another> timer",
    found="",
)


@pytest.fixture(scope="module")
def claimed(run: Run) -> Run:
    return replace(run, summary={**run.summary, "claims": [CLAIM.to_json()]})


@pytest.mark.parametrize(
    ("claim", "want"),
    [
        (CLAIM, ("200 ms ± 10%", "260 ms (250 ms to 270 ms)", "+30%")),
        (
            replace(CLAIM, than="hosts.cc a", published=2, within=0, ours=Ours(2, 2, 2), difference_percent=0.04),
            ("2×", "2×", "+0.0%"),
        ),
        (
            replace(CLAIM, published="it is so", difference_percent=None, ours=Ours(text="N R")),
            ("it is so", "N R", ""),
        ),
        (replace(CLAIM, difference_percent=None, ours=Ours()), ("200 ms ± 10%", "–", "")),
    ],
)  # fmt: skip
def test_what_a_reader_sees(claim: Claim, want: tuple[str, str, str]) -> None:
    assert (show_published(claim), show_ours(claim), show_difference(claim)) == want


def test_a_summary_has_them() -> None:
    document = CLAIM.to_json()
    assert misfit({"claims": [document]}, shapes.HEAD) == ""
    assert Claim.from_json(document | {"more": "of a newer testctl"}) == CLAIM
    assert "want a verdict of these: reproduced, " in refusal(Claim.from_json, document | {"verdict": "odd"})


def test_the_page_has_the_claims(claimed: Run, run: Run) -> None:
    (claim,) = run_of(render_report(claimed, {}))["run"]["claims"]
    assert (claim["sign"], claim["verdict"], claim["claim"]) == ("≠", "differs", "timeouts are <long>")
    assert (claim["published"], claim["ours"]) == ("200 ms ± 10%", "260 ms (250 ms to 270 ms)")
    assert claim["why"] == "ours is <another> timer"
    assert run_of(render_report(run, {}))["run"]["claims"] == []


def test_show_has_the_claims(claimed: Run) -> None:
    out = io.StringIO()
    print_summary(claimed, Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    row = next(line for line in lines if line.startswith("  timeouts are <long>"))
    assert row.split()[-2:] == ["≠", "differs"]
    assert "≠ differs  timeouts are <long>  ours is <another> timer" in lines
