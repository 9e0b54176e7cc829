# SPDX-License-Identifier: Apache-2.0
"""What the served page and the report show of recorded connections can be seen, and is in its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from testctl.report import write_report
from testctl.results import layout

from controller.tests.serve.conftest import make_run
from tests.serve.conftest import serving, wait

LONG = "NR..2" * 1200
"""What was sent on each ACK of a long recovery."""


@dataclass(frozen=True)
class Recorded:
    """A run of recorded connections, served and as a report."""

    address: str
    run: str
    report: str


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Its points have a long text as a metric."""
    results = tmp_path_factory.mktemp("shown") / "results"
    run = make_run(results, 1)
    summary = json.loads((run / layout.SUMMARY).read_text(encoding="utf-8"))
    for point in summary["points"]:
        path = run / layout.POINTS / point["id"] / layout.METRICS
        metrics = json.loads(path.read_text(encoding="utf-8"))
        for values in (metrics, point["metrics"]):
            values["bulk"]["recovery_sent_pattern"] = LONG
        path.write_text(json.dumps(metrics), encoding="utf-8")
    (run / layout.SUMMARY).write_text(json.dumps(summary, indent=1), encoding="utf-8")
    report = write_report(run, figures=False)
    with serving(results) as lines:
        yield Recorded(lines[1].split()[1], run.name, report.as_uri())


Show = Callable[..., Any]


@pytest.fixture
def show(browser: Any, recorded: Recorded) -> Iterator[Show]:
    """Opens an address in a window of a size."""
    contexts = []

    def start(address: str, width: int = 1400, height: int = 900, dark: bool = False) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(address)
        return page

    yield start
    for context in contexts:
        context.close()


def served_point(show: Show, recorded: Recorded, point: str, width: int = 1400) -> Any:
    page = show(f"{recorded.address}#/run/{recorded.run}/point/{point}", width)
    wait(page, "figures")
    return page


def report_point(show: Show, recorded: Recorded, point: str, width: int = 1400) -> Any:
    page = show(f"{recorded.report}#p-{point}", width)
    page.locator(f"#p-{point} .plot .main-svg").first.wait_for()
    return page


BOTH = pytest.mark.parametrize("opened", [served_point, report_point])


@BOTH
def test_each_metric_value_is_on_the_screen(show: Show, recorded: Recorded, opened: Callable[..., Any]) -> None:
    page = opened(show, recorded, "loss")
    table = page.locator("details:has(> summary:text-matches('^Metrics'))").first
    table.locator("> summary").click()
    cells = table.locator("tbody td:last-child")
    assert cells.count() > 20
    boxes = [cell.bounding_box() for cell in cells.all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 1400 for box in boxes)
    assert "6000 characters" in table.inner_text()


def test_the_time_axis_never_begins_before_the_point(show: Show, recorded: Recorded) -> None:
    page = served_point(show, recorded, "loss")
    after(page, lambda: page.evaluate("() => { location.hash += '?from=0&to=2000000'; }"))
    after(page, lambda: page.keyboard.press("ArrowLeft"))
    x = page.locator('[data-figure="throughput"]').evaluate(
        "element => ({range: element.layout.xaxis.range, title: element.layout.xaxis.title.text})"
    )
    assert (x["range"][0], x["title"]) == (0, "time (ms)")
    assert page.locator(".view output").inner_text() == "2 ms from 0.000 s"


def after(page: Any, act: Callable[[], Any]) -> None:
    """Do it, and wait until the figures on the screen show what it asked for."""
    page.evaluate("() => { document.documentElement.dataset.drawn = ''; }")
    act()
    page.wait_for_function("() => ['figures', 'all'].includes(document.documentElement.dataset.drawn)")
