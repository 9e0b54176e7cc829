# SPDX-License-Identifier: Apache-2.0
"""The page of a run begins with its question and what was found; report.html shows the same without a server."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from testctl.report import write_report

from controller.tests.serve.conftest import make_run
from controller.tests.support.synthetic_sweep import make_sweep
from tests.cli_commands import call
from tests.serve.conftest import go, serving, wait

BEFORE = "20260104T120000Z-sweep"
NIGHT = {
    "budget_s": 60, "jobs": 2, "took_s": 50, "ended_by": "the clock", "capacity": 9, "coverage": [],
    "missing_pairs": [], "not_run": [{"id": str(n), "tuples": []} for n in range(264)],
}  # fmt: skip
TREE = {"source": "/linux", "commit": "0123456789abcdef", "changed": "net/ipv4/tcp_cubic.c", "key": "fedcba98"}


@dataclass(frozen=True)
class Pages:
    """A sweep, the same as the second of two nightly runs, and recorded connections: their names and their reports."""

    address: str
    sweep: Path
    night: Path
    two: Path

    def opened(self, open_shown: Any, of: str, run: Path, width: int = 1280) -> Any:
        address = f"{self.address}#/run/{run.name}" if of == "serve" else (run / "report.html").as_uri()
        return open_shown(address, "run", width=width)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    results = tmp_path_factory.mktemp("pages") / "results"
    sweep, two = make_sweep(results, day=3).path, make_run(results, 1)
    before, night = results / BEFORE, results / "20260105T120000Z-sweep"
    for copy in (before, night):
        shutil.copytree(sweep, copy)
    summary = json.loads((sweep / "summary.json").read_text(encoding="utf-8"))
    tree = {"versions": summary["versions"] | {"tree": TREE}}
    (night / "summary.json").write_text(json.dumps(summary | tree | {"nightly": NIGHT | {"since": BEFORE}}), "utf-8")
    summary["points"][0]["digest"] = "0" * 64
    next(point for point in summary["points"] if point["verdict"] == "fail")["verdict"] = "pass"
    (before / "summary.json").write_text(json.dumps(summary), "utf-8")
    for run in (sweep, night, two):
        write_report(run)
    with serving(results) as lines:
        yield Pages(lines[1].split()[1], sweep, night, two)


def changed(of: Path) -> list[str]:
    """The points of a run that differ from the run BEFORE."""
    files = (of.parent / name / "summary.json" for name in (of.name, BEFORE))
    now, before = (json.loads(file.read_text("utf-8"))["points"] for file in files)
    return [new["id"] for new, old in zip(now, before, strict=True) if new != old]


BOTH = pytest.mark.parametrize("of", ["serve", "report"])
SAME = pytest.mark.parametrize("of", ["serve", pytest.param("report", marks=pytest.mark.long)])
"""What a report shows by the script and the answers that other tests here have read in one."""


@BOTH
def test_points_are_sorted_by_what_changed(open_shown: Any, pages: Pages, of: str) -> None:
    """Failures first, then what changed since the run before, then the others."""
    page = pages.opened(open_shown, of, pages.night)
    rows = page.get_by_role("region", name="Points", exact=True).locator("tbody tr")
    texts = [row.inner_text().split() for row in rows.all()]
    marked = [row[0] for row in texts if "changed" in row]
    assert sorted(marked) == sorted(id[:8] for id in changed(pages.night))
    order = [(row[3] not in ("fail", "invalid", "broken"), row[0] not in marked) for row in texts]
    failed = [one for one in order if not one[0]]
    assert order[len(failed) :] == sorted(order[len(failed) :])
    assert order[0] == (False, False)
    assert (True, False) in order
    assert "failures first, then what changed since the run before" in page.locator("main").inner_text()


@BOTH
def test_question_finding_and_the_plans_figures_come_first(open_shown: Any, pages: Pages, of: str) -> None:
    page = pages.opened(open_shown, of, pages.sweep)
    main = page.locator("main")
    text = main.inner_text()
    assert text.index("a sweep of three parameters") < text.index('3 of 36 fail "the link is used"')
    headings = main.get_by_role("heading", level=2).all_inner_texts()
    assert headings == [
        "Figures", "What failing points share", "Expectations (0 of 1 pass)", "Matrix", "Points", "How it was made",
    ]  # fmt: skip
    assert page.locator("figure h3").all_inner_texts()[1] == "Fairness"
    page.locator(".sweep canvas").first.wait_for()
    assert not page.get_by_text("testctl run", exact=False).first.is_visible()
    chosen = [page.get_by_role("combobox", name=label, exact=True) for label in ("across", "down")]
    assert [one.evaluate("one => one.selectedOptions[0].text") for one in chosen] == ["delay", "buffer"]


@BOTH
def test_why_points_are_broken_is_said_at_the_top(open_shown: Any, pages: Pages, of: str) -> None:
    page = pages.opened(open_shown, of, pages.sweep)
    broken = page.locator("main .error", has_text="the lab was killed")
    assert broken.bounding_box()["y"] < 400
    broken.get_by_role("link", name="1 point").click()
    wait(page, "figures")
    assert "the lab was killed" in page.locator("main").inner_text()


@SAME
def test_what_failing_points_share_is_a_table_that_leads_to_them(open_shown: Any, pages: Pages, of: str) -> None:
    page = pages.opened(open_shown, of, pages.sweep)
    row = page.get_by_role("region", name="Points: fail").locator("tbody tr")
    assert row.all_inner_texts() == ["all 3\tdelay=30ms and buffer=15kB\tsaturation 0.25, want ≥ 0.6"]
    row.get_by_role("button").click()
    points = page.get_by_role("region", name="Points", exact=True).locator("tbody tr")
    assert points.count() == 3
    assert all("30ms" in text and "15kB" in text for text in points.all_inner_texts())
    assert "3 of 36 points" in page.locator("p", has=page.get_by_role("button", name="Show all")).inner_text()


@SAME
def test_an_expectation_has_its_bound_and_what_was_found(open_shown: Any, pages: Pages, of: str) -> None:
    page = pages.opened(open_shown, of, pages.sweep)
    (cells,) = [
        row.split("\t") for row in page.get_by_role("region", name="Expectations").locator("tbody tr").all_inner_texts()
    ]
    assert cells[1:4] == ["the link is used", "saturation ≥ 0.6", "0.25 … 0.325"]


@BOTH
def test_a_nightly_run_says_what_is_new(open_shown: Any, pages: Pages, of: str) -> None:
    page = pages.opened(open_shown, of, pages.night)
    said = page.locator("main .since")
    assert said.inner_text().splitlines()[:3] == [
        "1 new failure, 1 of 36 points with another digest; different: 2 of 4 with cc=cubic and buffer=15kB",
        f"36 of 300 points were run: the time ran out; since {BEFORE}",
        "The 2 points",
    ]
    changed = (
        "The kernel is of /linux, commit 0123456789ab; since the build before, these changed: net/ipv4/tcp_cubic.c."
    )
    assert page.get_by_text(changed, exact=True).is_visible()
    beside = said.get_by_role("link", name="beside the run before").evaluate_all("all => all.map((one) => one.hash)")
    assert len(beside) == (2 if of == "serve" else 0)
    assert all(hash_.startswith(f"#/compare?a={BEFORE}") for hash_ in beside)
    assert page.get_by_role("link", name=BEFORE).count() == (of == "serve")


@SAME
def test_the_paths_are_those_that_the_plan_command_prints(open_shown: Any, pages: Pages, of: str) -> None:
    page = pages.opened(open_shown, of, pages.sweep)
    table = page.get_by_role("region", name="Paths", exact=True).locator("tr")
    assert table.all_inner_texts() == [
        "flow\tbase RTT\tbottleneck\tBDP\tbuffer",
        "bulk\t2.01 ms … 60 ms\tswitch:receiver: 100 Mb/s\t25.1 kB … 750 kB\t0.02 BDP … 9.9 BDP",
    ]
    printed = call(pages.sweep, "plan", "plan.yaml", COLUMNS=200).stdout
    rows = [re.sub(" {2,}", "\t", line.strip()) for line in printed.splitlines()]
    assert set(table.all_inner_texts()) <= set(rows)


@SAME
def test_a_narrow_screen_cuts_nothing_of_an_expectation(open_shown: Any, pages: Pages, of: str) -> None:
    page = pages.opened(open_shown, of, pages.sweep, width=390)
    for name in ("Expectations", "Points: fail"):
        region = page.get_by_role("region", name=name, exact=True)
        assert region.evaluate("element => element.scrollWidth <= element.clientWidth")
        boxes = [cell.bounding_box() for cell in region.locator("td").all()]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390


@SAME
def test_which_point_it_is_stays_in_sight_where_its_values_are_scrolled_to(
    open_shown: Any, pages: Pages, of: str
) -> None:
    region = pages.opened(open_shown, of, pages.sweep, width=390).get_by_role("region", name="Points", exact=True)
    assert region.evaluate("element => { element.scrollLeft = 200; return element.scrollLeft; }") == 200
    boxes = [link.bounding_box() for link in region.locator("tbody td:first-child a").all()]
    assert boxes
    assert all(box["x"] >= 0 for box in boxes)


@SAME
def test_columns_that_say_nothing_are_named_below_the_table(open_shown: Any, pages: Pages, of: str) -> None:
    page = pages.opened(open_shown, of, pages.two)
    heads = page.get_by_role("region", name="Points", exact=True).locator("thead").inner_text()
    note = page.locator("main > div > .note", has_text="The same in all points").inner_text()
    assert "throughput" in heads
    assert "throughput" not in note


@SAME
def test_a_matrix_of_one_parameter_has_no_place_for_a_second(open_shown: Any, pages: Pages, of: str) -> None:
    page = pages.opened(open_shown, of, pages.two)
    assert page.get_by_role("region", name="Matrix").locator("thead").inner_text().strip() == "what →\tloss\tack_owed"
    assert [page.get_by_role("combobox", name=label, exact=True).count() for label in ("across", "down")] == [0, 0]


def test_a_report_shows_a_point_without_a_server(open_shown: Any, pages: Pages) -> None:
    page = open_shown((pages.two / "report.html").as_uri() + "#p-loss", "all")
    assert page.url.endswith(f"#/run/{pages.two.name}/point/loss")
    for name in ("throughput", "seq", "cwnd", "rtt", "latency"):
        page.locator(f'[data-figure="{name}"] canvas').wait_for()
    page.locator('[data-figure="distribution"]').scroll_into_view_if_needed()
    page.locator('[data-figure="distribution"] canvas').wait_for()
    page.get_by_role("heading", name="Recoveries").wait_for()
    before = page.get_by_label("What is shown").inner_text()
    page.get_by_role("button", name="Show the recovery at").first.click()
    wait(page, "all")
    assert page.get_by_label("What is shown").inner_text() != before
    for words in ("Trend over runs", "Packets in this time", "point.json"):
        assert page.get_by_text(words).count() == 0
    assert page.get_by_text("testctl serve also shows").is_visible()


def test_a_report_compares_two_of_its_points_and_says_what_it_has_not(open_shown: Any, pages: Pages) -> None:
    page = pages.opened(open_shown, "report", pages.two)
    for button in page.get_by_role("region", name="Points", exact=True).get_by_role("button", name="Mark ").all():
        button.click()
    page.get_by_role("link", name="Compare them").click()
    wait(page, "all")
    assert page.get_by_role("heading", name="Metrics that differ").is_visible()
    page.evaluate("() => { location.hash = '#/trend/loss'; }")
    page.get_by_role("heading", name="No such page").wait_for()
    assert page.get_by_role("alert").inner_text().startswith("This page is an export of one run.")


def test_a_comparison_in_a_report_changes_no_point_s_own_page(open_shown: Any, pages: Pages) -> None:
    """Where it gives both figures a logarithmic axis, as one of them has."""
    page = open_shown("about:blank")
    page.add_init_script(
        """const parse = JSON.parse;
        JSON.parse = (...given) => {
          const found = parse(...given), rtt = found?.figures?.rtt;
          if (rtt && !window.one) for (const {answer} of (window.one = rtt)) {
            answer.range[0] = answer.range[1] / 1000; answer.spec.encoding.y.scale = {type: "log"};
          }
          return found;
        };"""
    )
    page.goto(f"{(pages.two / 'report.html').as_uri()}#/compare?a={pages.two.name}/loss&b={pages.two.name}/ack_owed")
    wait(page, "all")
    kind = "all => all.map(({chart}) => chart.spec.encoding.y.scale.type)"
    assert page.locator('[data-figure="rtt"]').evaluate_all(kind) == ["log", "log"]
    own = []
    for point in ("loss", "ack_owed"):
        go(page, f"#/run/{pages.two.name}/point/{point}", "all")
        own += page.locator('[data-figure="rtt"]').evaluate_all(kind)
    assert sorted(own, key=str) == [None, "log"]


def test_a_report_asks_for_no_figure_that_it_has_not(open_shown: Any, pages: Pages) -> None:
    """As an address of serve, which draws any, names one."""
    address = f"#/run/{pages.sweep.name}?figure=metric,saturation,switch.delay,,,"
    page = open_shown((pages.sweep / "report.html").as_uri() + address, "run")
    page.locator(".sweep canvas").first.wait_for()
    assert page.locator("#said").text_content() == ""
