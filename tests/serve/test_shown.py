# SPDX-License-Identifier: Apache-2.0
"""What the served page and the report show of recorded connections can be seen, and is in its place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pytest
from PIL import Image
from testctl.report import write_report
from testctl.results import layout

from controller.tests.serve.conftest import make_run
from tests.serve.conftest import after, serving

pytestmark = pytest.mark.long

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
    versions = {"testctl": "0.1.0", "commit": "0123456789abcdef" * 3, "kernels": {"6.12": "6.12.117"}}
    (run / layout.VERSIONS).write_text(json.dumps(versions), encoding="utf-8")
    report = write_report(run, figures=False)
    with serving(results) as lines:
        yield Recorded(lines[1].split()[1], run.name, report.as_uri())


def served_point(open_shown: Any, recorded: Recorded, point: str, width: int = 1400) -> Any:
    return open_shown(f"{recorded.address}#/run/{recorded.run}/point/{point}", "figures", width=width)


def report_point(open_shown: Any, recorded: Recorded, point: str, width: int = 1400) -> Any:
    return open_shown(f"{recorded.report}#p-{point}", "figures", width=width)


BOTH = pytest.mark.parametrize("opened", [served_point, report_point])


@BOTH
def test_each_metric_value_is_on_the_screen(open_shown: Any, recorded: Recorded, opened: Callable[..., Any]) -> None:
    page = opened(open_shown, recorded, "loss")
    table = page.locator("details:has(> summary:text-matches('^Metrics'))").first
    table.locator("> summary").click()
    cells = table.locator("tbody td:last-child")
    assert cells.count() > 20
    boxes = [cell.bounding_box() for cell in cells.all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 1400 for box in boxes)
    assert "6000 characters" in table.inner_text()
    assert table.locator("tbody td").first.inner_text() == "total_throughput_bps", "headline metrics come first"
    assert re.search(r"Without a value: \w+, ", table.inner_text()), "and take no rows where they are empty"


@BOTH
def test_a_narrow_page_does_not_overflow_with_all_opened(
    open_shown: Any, recorded: Recorded, opened: Callable[..., Any]
) -> None:
    page = opened(open_shown, recorded, "loss", 390)
    page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390


def test_a_table_that_goes_on_beyond_the_edge_has_a_shadow_there(open_shown: Any, recorded: Recorded) -> None:
    page = open_shown(f"{recorded.address}#/run/{recorded.run}", "run", width=390)
    region = page.get_by_role("region", name="Points", exact=True)
    region.scroll_into_view_if_needed()
    assert region.evaluate("element => element.scrollWidth > element.clientWidth + 20")
    before = edge(region)
    region.evaluate("element => { element.scrollLeft = element.scrollWidth; }")
    assert before < edge(region) == 255


def edge(region: Any) -> int:
    """How light the darkest pixel of its right edge is, above the table's text."""
    with Image.open(BytesIO(region.screenshot())) as picture:
        grey = picture.convert("L")
        return int(min(grey.getpixel((grey.width - 2, y)) for y in range(2, 6)))


def test_the_time_axis_never_begins_before_the_point(open_shown: Any, recorded: Recorded) -> None:
    page = served_point(open_shown, recorded, "loss")
    after(page, lambda: page.evaluate("() => { location.hash += '?from=0&to=2000000'; }"))
    after(page, lambda: page.keyboard.press("ArrowLeft"))
    x = page.locator('[data-figure="throughput"]').evaluate(
        "({chart}) => ({from: chart.from, title: chart.spec.encoding.x.axis.title})"
    )
    assert (x["from"], x["title"]) == (0, "time (ms)")
    assert page.locator(".view output").inner_text() == "2 ms from 0.000 s"
