# SPDX-License-Identifier: Apache-2.0
"""Scorecards in a browser: a line of the home page, the page itself, and its links to pages of runs and points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from controller.tests.support.synthetic_sweep import make_sweep
from tests.serve.conftest import serving, wait

CARD = "20260102T120000Z-certify-vegas"


def test_a_scorecard_leads_to_pages_of_points_with_the_token_too(tmp_path: Path, browser: Any) -> None:
    results = tmp_path / "results"
    run = make_sweep(results, name="loss")
    point = run.points[0].id
    card = results / CARD
    card.mkdir()
    where = f"../{run.name}/report.html#/run/{run.name}/point/{point}"
    script = "<script>document.title = 'ran'</script><meta http-equiv=refresh content='0; url=/'>"
    page_text = f"<!doctype html><title>card</title>{script}<a href='{where}'>✗ fail</a>"
    (card / "scorecard.html").write_text(page_text, encoding="utf-8")
    criteria = [{"name": "loss", "level": "MUST", "results": {"vegas": {"verdict": "fail"}}}]
    data = {"cc": "vegas", "kernel": "7.3.4", "started": "2026-01-02T12:00:00+00:00", "criteria": criteria}
    (card / "scorecard.json").write_text(json.dumps(data), encoding="utf-8")
    file = tmp_path / "token"
    file.write_text("the-token-of-this-test-4567", encoding="ascii")
    file.chmod(0o600)
    with serving(results, "--token-file", str(file)) as lines:
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{lines[1].split()[1]}?token=the-token-of-this-test-4567")
        wait(page, "runs")
        row = page.get_by_role("region", name="Scorecards").locator("tbody tr")
        assert [text.strip() for text in row.locator("td").all_inner_texts()][:5] == [
            "vegas", "1 of 1", "✗ 1 fail", "7.3.4", "2026-01-02 12:00",
        ]  # fmt: skip
        row.get_by_role("link").click()
        page.get_by_role("link", name="fail").wait_for()
        assert page.title() == "card"
        page.get_by_role("link", name="fail").click()
        page.wait_for_url(f"**/#/run/{run.name}/point/{point}")
        page.get_by_role("heading", name="Tuples").or_(page.locator("h1")).first.wait_for()
        assert page.locator("h1").first.inner_text() != "Not shown"
        context.close()
