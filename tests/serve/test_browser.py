# SPDX-License-Identifier: Apache-2.0
"""`testctl serve` in a browser: click, zoom, compare, keys, narrow and dark, over a million packets from the lab."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.serve.conftest import after, go, wait

pytestmark = pytest.mark.lab

Open = Callable[..., Any]


def figure(page: Any, name: str, nth: int = 0) -> Any:
    return page.locator(f'[data-figure="{name}"]').nth(nth)


def seen(page: Any, name: str, nth: int = 0) -> dict[str, Any]:
    """What is drawn in a figure: names, how many values, the range of x."""
    return dict(
        figure(page, name, nth).evaluate(
            """({chart}) => ({names: chart.legend.map(([name]) => name), range: [chart.from, chart.to], y: chart.range,
                 count: Object.values(chart.data).reduce((sum, columns) => sum + columns.t.length, 0),
                 title: chart.spec.encoding.x.axis.title,
                 shaded: chart.spec.layer.filter(({mark}) => mark.type === "rect").length})"""
        )
    )


def query(page: Any) -> dict[str, str]:
    return dict(re.findall(r"[?&](\w+)=([^&]*)", page.url))


def span(page: Any) -> int:
    asked = query(page)
    return int(asked["to"]) - int(asked["from"])


def test_from_the_list_of_runs_to_a_point(open_page: Open, served: Any) -> None:
    page = open_page()
    rows = page.get_by_role("region", name="Runs", exact=True).locator("tbody tr")
    assert rows.count() == 5
    text = page.locator("main").inner_text()
    assert "in progress" in text
    assert "damaged" in text
    page.get_by_role("region", name="Runs", exact=True).get_by_role("link", name="million").click()
    wait(page, "run")
    assert "1 pass" in page.locator("main").inner_text()
    page.locator("a[data-mark]").first.click()
    wait(page, "all")
    packets = int(page.get_by_text("packets,").first.inner_text().split()[0].replace(",", ""))
    assert packets > 1_000_000
    for name in ("throughput", "seq", "queue", "cwnd", "latency", "rtt", "own_queue"):
        found = seen(page, name)
        assert 0 < found["count"] < 10_000, name
        assert found["range"] == pytest.approx([0, 1.2e9], rel=0.1)


def test_a_run_in_progress_has_no_verdict_yet(open_page: Open, served: Any) -> None:
    page = open_page("#/run/20260102T120000Z-matrix.in-progress", "run")
    assert page.locator(".badges").first.inner_text() == "· 4 not judged yet"
    assert {cell.inner_text() for cell in page.locator(".matrix button").all()} == {"· 1"}
    assert "pass" not in page.locator("main").inner_text()


def test_zoom_from_seconds_to_microseconds_by_keys(open_page: Open, served: Any) -> None:
    page = open_page(f"#/run/{served.million}/point/{served.point}", "figures")
    spans = []
    for _ in range(10):
        after(page, lambda: page.keyboard.press("+"))
        spans.append(span(page))
    assert spans == sorted(spans, reverse=True)
    assert spans[-1] < 100_000
    found = seen(page, "seq")
    assert "µs after" in found["title"]
    assert "every packet" in page.locator("figure").nth(1).inner_text()
    before = query(page)
    after(page, lambda: page.keyboard.press("ArrowRight"))
    assert int(query(page)["from"]) > int(before["from"])
    after(page, page.go_back)
    assert query(page) == before
    page.get_by_text("Packets in this time").click()
    page.get_by_role("region", name="Packets").locator("tbody tr").first.wait_for()
    after(page, lambda: page.keyboard.press("0"))
    assert query(page) == {}


def test_dragging_zooms_every_figure(open_page: Open, served: Any) -> None:
    page = open_page(f"#/run/{served.million}/point/{served.point}", "all")
    box = figure(page, "throughput").bounding_box()

    def drag() -> None:
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + 60, steps=5)
        page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60, steps=5)
        page.mouse.up()

    after(page, drag)
    whole = 1_200_000_000
    assert int(query(page)["from"]) == pytest.approx(0.5 * whole, rel=0.05)
    assert span(page) == pytest.approx(0.1 * whole, rel=0.1)
    page.wait_for_selector('html[data-drawn="all"]', state="attached")
    assert len({str(seen(page, name)["range"]) for name in ("throughput", "seq", "queue", "rtt")}) == 1
    after(page, lambda: figure(page, "throughput").dblclick())
    assert query(page) == {}


def test_a_link_shows_the_same_again(open_page: Open, served: Any) -> None:
    address = f"#/run/{served.million}/point/{served.point}?from=500000000&to=500200000"
    first, second = (seen(open_page(address, "figures"), "seq") for _ in range(2))
    assert first == second
    assert first["title"] == "time (µs after 0.500 s)"
    assert first["range"] == [500_000_000, 500_200_000]


def test_an_address_that_makes_no_sense_is_told(open_page: Open, served: Any) -> None:
    for address in (
        f"#/run/{served.million}/point/none",
        "#/run/..%2F..%2Fetc",
        "#/trend/none",
        f"#/compare?a=x&b={served.million}/y",
    ):
        page = open_page(address, "error")
        assert page.get_by_role("alert").inner_text()
        page.errors.clear()  # the browser logs that an answer was 404
    page = open_page()
    page.evaluate("() => { location.hash = '#/nowhere/x'; }")
    page.get_by_text("There is no such page.").wait_for()
    page.errors[:] = [text for text in page.errors if "404" not in text]  # one may be logged late


def test_the_matrix_leads_to_points(open_page: Open, served: Any) -> None:
    page = open_page(f"#/run/{served.matrix}", "run")
    cells = page.locator(".matrix button")
    assert cells.count() == 4
    assert page.locator("a[data-mark]").count() == 4
    page.get_by_label("metric", exact=True).fill("throughput_bps")
    page.get_by_label("metric", exact=True).press("Enter")
    page.locator(".scale i").wait_for()
    assert "Mb/s" in cells.first.inner_text()
    assert len({cell.evaluate("cell => cell.style.background") for cell in cells.all()}) > 1
    assert query(page)["metric"] == "throughput_bps"
    cells.first.click()
    assert page.locator("a[data-mark]").count() == 1
    assert page.evaluate("() => document.activeElement.id") == "points"
    page.get_by_role("button", name="Show all").click()
    assert page.locator("a[data-mark]").count() == 4
    page.get_by_label("down").select_option(label="cc")
    page.get_by_label("across").select_option(label="cc")
    assert cells.count() == 2  # each of two points
    assert "spread" in page.get_by_label("of points").inner_text()
    cells.first.click()
    assert page.locator("a[data-mark]").count() == 2


def test_two_points_beside_each_other(open_page: Open, served: Any) -> None:
    page = open_page(f"#/run/{served.matrix}", "run")
    for nth in (0, 3):
        page.locator("button[data-marks]").nth(nth).click()
    page.get_by_role("link", name="Compare them").click()
    wait(page, "all")
    text = page.locator("main").inner_text()
    assert "Their digests are different." in text
    assert re.search(r"cc\s+cubic\s+reno", text)
    for name in ("throughput", "seq", "rtt"):
        a, b = seen(page, name), seen(page, name, 1)
        assert (a["range"], a["y"]) == (b["range"], b["y"])
    after(page, lambda: page.keyboard.press("+"))
    assert seen(page, "throughput")["range"] == seen(page, "throughput", 1)["range"]
    assert span(page) < 200_000_000
    left, right = (figure(page, "throughput", nth).bounding_box() for nth in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]


def test_stalls_lead_to_their_place(open_page: Open, served: Any) -> None:
    page = open_page(f"#/run/{served.million}/point/{served.point}", "figures")
    stalls = page.get_by_role("region", name="Stalls").locator("button")
    after(page, stalls.first.click)
    assert seen(page, "seq")["shaded"] >= 1
    begins = float(stalls.first.inner_text().split()[0]) * 1e9
    assert int(query(page)["from"]) < begins
    assert int(query(page)["to"]) > begins + 40_000_000, "to beyond its end"
    assert page.locator("tr.chosen").count() == 1
    whole = query(page)
    after(page, lambda: page.keyboard.press("0"))
    after(page, lambda: page.keyboard.press("n"))
    assert query(page) == whole


def test_the_trend_of_a_point_over_runs(open_page: Open, served: Any) -> None:
    page = open_page(f"#/run/{served.matrix}", "run")
    page.locator("a[data-mark]").first.click()
    wait(page, "figures")
    page.get_by_role("link", name="Trend over runs").click()
    wait(page, "trend")
    assert "4 runs; no change of level" in page.locator("main").inner_text()
    digests = page.locator("tbody tr td:last-child").all_inner_texts()
    assert len(digests) == 4
    assert len(set(digests)) == 1


def test_by_keyboard_alone(open_page: Open, served: Any) -> None:
    page = open_page()
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    page.keyboard.press("/")
    page.keyboard.type("million")
    assert page.get_by_role("region", name="Runs", exact=True).locator("tbody tr").count() == 1
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    wait(page, "run")
    page.keyboard.press("j")
    page.keyboard.press("m")
    assert page.locator("#marked").is_visible()
    page.keyboard.press("Enter")
    wait(page, "figures")
    page.keyboard.press("Escape")
    wait(page, "run")
    page.keyboard.press("Escape")
    wait(page, "runs")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    focused = page.evaluate("() => [...document.querySelectorAll('[data-item]')].indexOf(document.activeElement)")
    assert focused == 0
    page.keyboard.press("/")
    page.keyboard.type("no such run")
    assert page.get_by_text("No run has these words.").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("region", name="Runs", exact=True).locator("tbody tr").count() == 5


@pytest.mark.parametrize("width", [320, pytest.param(390, marks=pytest.mark.long)])
def test_narrow_screens(open_page: Open, served: Any, width: int) -> None:
    page = open_page("", "runs", width=width, height=800)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    views = [(f"#/run/{served.matrix}", "run"), (f"#/run/{served.million}/point/{served.point}", "all"),
             (f"#/compare?a={served.million}/{served.point}&b={served.million}/{served.point}", "all"),
             (f"#/trend/{served.point}", "trend")]  # fmt: skip
    for address, what in views:
        go(page, address, what)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, address


def test_dark_mode_also_when_it_changes(open_page: Open, served: Any) -> None:
    page = open_page(f"#/run/{served.million}/point/{served.point}", "all", dark=True)
    paper = "() => getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(20, 23, 27)"
    assert figure(page, "queue").get_attribute("data-colours") == "dark"
    page.emulate_media(color_scheme="light")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.locator('[data-figure="queue"][data-colours="light"]').wait_for()


def test_everything_has_a_name(open_page: Open, served: Any) -> None:
    page = open_page()
    views = [("", "runs"), (f"#/run/{served.matrix}", "run"), (f"#/run/{served.million}/point/{served.point}", "all")]
    for address, what in views:
        if address:
            go(page, address, what)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll('button, a, input, select, [role=region], [role=img]')]
                 .filter(one => ![one.ariaLabel, one.textContent, one.labels?.[0]?.textContent].some(x => x?.trim()))
                 .map(one => one.outerHTML.slice(0, 100))"""
        )
        assert nameless == []
        assert page.locator("h1").count() == 1
    assert re.search(
        r"Throughput, 1\.2.* s from 0 ns: bulk; at most 2\.5", figure(page, "throughput").get_attribute("aria-label")
    )


def test_nothing_is_asked_of_other_hosts(open_page: Open, served: Any) -> None:
    page = open_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    wait(page, "runs")
    page.get_by_role("region", name="Runs", exact=True).get_by_role("link", name="million").click()
    wait(page, "run")
    page.locator("a[data-mark]").first.click()
    wait(page, "all")
    assert len(asked) > 10
    assert {url for url in asked if not url.startswith((served.address, "data:"))} == set()
