# SPDX-License-Identifier: Apache-2.0
"""Tables of serve and the report are sorted, filtered and searched; runs lead to their plan, files and report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from controller.tests.serve.conftest import make_run
from tests.serve.conftest import Shown, serving, wait

pytestmark = pytest.mark.long


def opened(open_shown: Any, shown: Shown, place: str, what: str = "run") -> Any:
    return open_shown(shown.at(place), what)


def column(page: Any, table: str, heading: str) -> list[str]:
    """The texts of a column of a table, of the rows that are shown."""
    region = page.get_by_role("region", name=table, exact=True)
    region.scroll_into_view_if_needed()  # what is not in view is not laid out, and has no text that is shown
    region.get_by_role("columnheader", name=heading).first.wait_for()
    heads = [text.strip(" ▲▼") for text in region.locator("thead th").all_inner_texts()]
    at = heads.index(heading) + 1
    return [str(cell.inner_text()) for cell in region.locator(f"tbody tr:visible > :nth-child({at})").all()]


def test_a_click_on_a_head_sorts_points_missing_values_last(open_shown: Any, shown: Shown) -> None:
    page, table = opened(open_shown, shown, "#/run/{sweep}"), "Points"
    heads = page.get_by_role("region", name=table, exact=True).locator("thead")
    head = heads.get_by_role("button", name="saturation")
    head.click()
    rising = column(page, table, "saturation")
    assert rising[:3] == ["0.25", "0.3", "0.325"]
    assert rising[-2:] == ["–", "–"]
    head.click()
    falling = column(page, table, "saturation")
    assert falling[0] == "0.97"
    assert falling[-2:] == ["–", "–"]
    heads.get_by_role("button", name="delay").click()
    assert list(dict.fromkeys(column(page, table, "delay"))) == ["1ms", "3ms", "10ms", "30ms"]
    assert page.locator("th[aria-sort=ascending]").all_inner_texts() == ["delay"]


def test_only_failures_by_an_address_that_can_be_shared(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/run/{sweep}")
    assert len(column(page, "Points", "point")) == 36
    page.get_by_role("combobox", name="show", exact=True).last.select_option("failures")
    verdicts = {text.split()[-1] for text in column(page, "Points", "verdict")}
    assert verdicts == {"fail", "invalid", "broken"}
    assert "show=failures" in page.url
    page.reload()
    wait(page, "run")
    assert len(column(page, "Points", "point")) == 5
    page.get_by_role("combobox", name="delay", exact=True).select_option("30ms")
    assert len(column(page, "Points", "point")) == 3
    page.get_by_role("combobox", name="buffer", exact=True).select_option("250kB")
    assert page.get_by_text("No point is like that.").is_visible()
    page.get_by_role("button", name="Show all").click()
    assert len(column(page, "Points", "point")) == 36


def test_the_search_finds_points_of_the_last_runs(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "", "runs")
    page.get_by_role("searchbox").fill("dctcp 30ms")
    link = page.get_by_role("link", name="sweep: 3 points")
    link.click()
    wait(page, "run")
    assert page.get_by_role("searchbox").input_value() == "dctcp 30ms"
    assert set(column(page, "Points", "cc")) == {"dctcp"}
    assert len(column(page, "Points", "delay")) == 3
    page.go_back()
    wait(page, "runs")
    page.get_by_role("searchbox").fill("no such word")
    page.get_by_text("No point of a plan's last run has these words.").wait_for()


@pytest.mark.parametrize("width", [1400, 390])
def test_the_lists_of_runs_are_as_wide_as_the_page(open_shown: Any, shown: Shown, width: int) -> None:
    """Also beside many --set; of a phone's width they are blocks, one a run."""
    sets = [f"hosts.net.ipv4.tcp_{n}=1" for n in range(20)]
    more = {"runs": [{**run, "overrides": sets} for run in httpx.get(f"{shown.address}api/runs").json()["runs"]]}
    page = open_shown("about:blank", width=width)
    page.route("**/api/runs", lambda route: route.fulfill(json=route.fetch().json() | more))
    page.goto(shown.at("#/"))
    wait(page, "runs")
    page.get_by_text("tcp_19=1").first.wait_for()
    wide = "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).length"
    assert page.evaluate(wide) == 0


def test_a_run_leads_to_its_report_plan_and_files(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/run/{sweep}")
    with page.expect_popup() as popped:
        page.get_by_role("link", name="report.html").click()
    wait(popped.value, "run")
    assert popped.value.evaluate("() => origin") == "null"
    asked = "async () => { try { return (await fetch('/api/runs')).status; } catch (error) { return String(error); } }"
    assert "Failed to fetch" in popped.value.evaluate(asked)
    with page.expect_popup() as popped:
        page.get_by_role("link", name="plan.yaml").click()
    assert "a sweep of three parameters" in popped.value.locator("body").inner_text()
    page.get_by_role("link", name="files", exact=False).click()
    wait(page, "files")
    assert {"plan.yaml", "report.html", "summary.json"} <= set(column(page, "Files", "file"))


def test_a_point_lists_its_own_files(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/run/{two}/point/loss", "figures")
    page.get_by_text("What was asked, and files").click()
    with page.expect_popup() as popped:
        page.get_by_role("link", name="point.json").click()
    assert json.loads(popped.value.locator("body").inner_text())["id"] == "loss"


def test_a_plan_has_the_trends_of_its_points(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/", "runs")
    page.get_by_role("combobox", name="plan", exact=True).select_option("two")
    assert len(column(page, "Runs", "plan")) == 2
    page.get_by_role("link", name="Trends of two").click()
    wait(page, "plan")
    page.get_by_text("2 points: no change").click()
    assert column(page, "Trends of the others", "last value") == ["20.2 Mb/s", "336 Mb/s"]
    assert page.locator(".trend circle").count() == 3  # the last values, and an earlier run that failed
    page.get_by_role("combobox", name="metric", exact=True).fill("retransmissions")
    page.get_by_role("combobox", name="metric", exact=True).press("Enter")
    page.get_by_role("cell", name="71", exact=True).wait_for()
    assert "metric=retransmissions" in page.url
    page.get_by_role("searchbox").fill("owed")
    assert len(column(page, "Trends", "point")) == 1
    page.get_by_role("searchbox").fill("nothing like it")
    assert page.get_by_text("No point has these words.").is_visible()


def test_the_home_page_has_the_plans_failures_first_and_what_changed(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/", "runs")
    assert column(page, "Plans", "plan")[-1] == "flows"
    assert page.locator(".trend polyline").count() == 3
    page.get_by_role("cell", name="no change").wait_for()
    assert page.get_by_role("cell", name="the first run").count() == 2
    page.get_by_role("searchbox").fill("broken")
    assert column(page, "Plans", "plan") == ["sweep"]
    assert column(page, "Runs", "plan") == ["sweep"]
    page.get_by_role("searchbox").fill("no such word")
    assert page.get_by_text("No run has these words.").is_visible()


def test_one_run_has_no_trend_and_says_what_makes_one(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/plan/sweep", "plan")
    assert page.get_by_text("One run so far").is_visible()
    page = opened(open_shown, shown, "#/trend/all_instruments", "trend")
    assert page.get_by_text("testctl nightly").is_visible()
    assert not page.locator(".plot").is_visible()


def test_a_metric_is_found_among_many_by_its_letters(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/run/{two}")
    form = page.get_by_role("combobox", name="metric", exact=True)
    form.fill("no_such_metric")
    form.press("Enter")
    assert "no metric of this name" in form.evaluate("element => element.validationMessage")
    assert "metric=" not in page.url
    form.fill("stall_longest_ms")
    form.press("Enter")
    page.locator(".scale i").wait_for()
    assert "metric=stall_longest_ms" in page.url


def cells(page: Any) -> list[str]:
    """The matrix's cells, with the mean of a metric."""
    form = page.get_by_role("combobox", name="metric", exact=True)
    form.fill("latency_p99_us")
    form.press("Enter")
    page.locator(".scale i").wait_for()
    return list(page.locator(".matrix td button").all_inner_texts())


def test_a_point_that_ends_while_its_run_is_shown_moves_no_value_of_the_matrix(open_shown: Any, shown: Shown) -> None:
    """The values that are asked for later have that point too, before others."""

    def before_it_ended(route: Any) -> None:
        run = route.fetch().json()
        route.fulfill(json={**run, "points": run["points"][1:]})

    whole = cells(opened(open_shown, shown, "#/run/{sweep}"))
    page = open_shown(shown.at("#/compare"))
    page.route("**/api/runs/*-sweep", before_it_ended)
    page.goto(shown.at("#/run/{sweep}"))
    wait(page, "run")
    assert sum(one != two for one, two in zip(whole, cells(page), strict=True)) == 1


@pytest.mark.parametrize(("place", "what"), [("#/plan/two", "plan"), ("#/trend/loss", "trend")])
def test_of_quick_choices_the_last_one_is_shown(open_shown: Any, shown: Shown, place: str, what: str) -> None:
    """Whichever answer comes last; and no numbers of another where there is no answer."""
    page, late = opened(open_shown, shown, place, what), []
    page.route("**/api/*/*metric=retransmissions*", lambda route: late.append(route))
    page.route("**/api/*/*metric=packets_lost*", lambda route: route.abort())
    form = page.get_by_role("combobox", name="metric", exact=True)
    if what == "plan":
        page.get_by_text("2 points: no change").click()

    def choose(metric: str) -> None:
        form.fill(metric)
        form.press("Enter")

    choose("retransmissions")
    choose("stall_longest_ms")
    shown_now = page.locator("main").get_by_text(" ms", exact=False).first
    shown_now.wait_for()
    text = page.locator("main").inner_text()
    with page.expect_response("**/api/*/*metric=retransmissions*"):
        late[0].continue_()
    page.wait_for_timeout(200)
    assert page.locator("main").inner_text() == text
    choose("packets_lost")
    page.get_by_role("alert").get_by_text("The server does not answer.").wait_for()
    assert not shown_now.is_visible()


def test_how_a_run_was_made_and_what_its_failures_share_in_words(open_shown: Any, shown: Shown) -> None:
    def more(route: Any) -> None:
        run = route.fetch().json()
        (fail,) = (one for one in run["failures"] if one["verdict"] == "fail")
        fail["rows"] *= 2
        route.fulfill(json={**run, "wall_s": 179.7})

    page = open_shown(shown.at("#/compare"))
    page.route("**/api/runs/*-sweep", more)
    page.goto(shown.at("#/run/{sweep}"))
    wait(page, "run")
    shares = page.locator("p", has_text="each row is about those that no row above has")
    assert shares.all_inner_texts() == ["✗ fail 3 of 34 points; each row is about those that no row above has"]
    assert page.locator("dd", has_text="3 min 0 s").count() == 1


def test_after_the_last_stall_there_is_no_next_one(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/run/{two}/point/ack_owed?from=33000000&to=33100000", "all")
    page.keyboard.press("n")
    rows = page.get_by_role("region", name="Stalls", exact=True).locator("table").first.locator("> tbody > tr")
    page.locator("tr.chosen").wait_for()
    assert "chosen" in (rows.last.get_attribute("class") or "")
    assert rows.count() > 1


def test_a_comparison_has_metrics_that_one_point_lacks_and_texts(open_shown: Any, shown: Shown) -> None:
    def cell(text: str, value: float | None = None) -> dict[str, Any]:
        return {"value": value, "shown": text, "text": value is None}

    odd = {"loss": [cell("–"), cell("7", 7), cell("cubic"), cell("same")],
           "ack_owed": [cell("7", 7), cell("–"), cell("reno"), cell("same")]}  # fmt: skip

    def with_odd(route: Any) -> None:
        point = route.fetch().json()
        names = ("only_b", "only_a", "a_text", "another_text")
        rows = [[name, one, *[cell("–")] * (len(point["metrics"]["flows"]) - 1)]
                for name, one in zip(names, odd[point["id"]], strict=True)]  # fmt: skip
        route.fulfill(json={**point, "metrics": {**point["metrics"], "rows": rows}})

    page = open_shown(shown.at("#/compare"))
    page.route("**/points/*", with_odd)
    page.goto(shown.at("#/compare?a={two}/loss&b={two}/ack_owed"))
    wait(page, "figures")
    found = zip(*(column(page, "Other metrics", head) for head in ("metric", "A", "B")), strict=True)
    assert sorted(found) == [("a_text", "cubic", "reno"), ("only_a", "7", "–"), ("only_b", "–", "7")]


def test_a_comparison_begins_with_headline_metrics_better_or_worse(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/compare?a={two}/loss&b={two}/ack_owed", "figures")
    found = dict(zip(column(page, "Headline metrics", "metric"), column(page, "Headline metrics", "B is"), strict=True))
    assert next(iter(found)) == "throughput_bps"
    assert found["throughput_bps"] == found["packets_lost"] == "▲ better"
    assert found["stall_longest_ms"] == "▼ worse"
    page.get_by_text("other metrics, worse ones first").click()
    others = column(page, "Other metrics", "B is")
    assert others == sorted(others, key=["▼ worse", "▲ better", ""].index)


def test_figures_beside_each_other_have_the_same_axis(open_shown: Any, shown: Shown) -> None:
    """Also where the values of one of them alone are so far apart that its axis is logarithmic."""

    def far_apart(route: Any) -> None:
        figure = route.fetch().json()
        figure["range"][0] = figure["range"][1] / 1000
        figure["spec"]["encoding"]["y"]["scale"] = {"type": "log"}
        route.fulfill(json=figure)

    page = open_shown(shown.at("#/compare"))
    page.route("**/points/loss/figures/rtt?*", far_apart)
    page.goto(shown.at("#/compare?a={two}/loss&b={two}/ack_owed"))
    wait(page, "all")
    drawn = page.locator("[aria-label^='Round-trip time']").evaluate_all("all => all.map(({ chart }) => chart)")
    first, second = (chart for chart in drawn if chart)
    assert first["range"] == second["range"]
    assert first["range"][0] > 0
    assert first["spec"]["encoding"]["y"]["scale"] == second["spec"]["encoding"]["y"]["scale"] == {"type": "log"}


def test_a_run_with_pages_of_the_kernels_source_leads_there(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/run/{flows}")
    with page.expect_popup() as opening:
        page.get_by_role("link", name="coverage of the kernel's source").click()
    opening.value.get_by_role("heading", name="What 1 point executed").wait_for()
    assert not opened(open_shown, shown, "#/run/{two}").get_by_text("coverage of the kernel's source").count()


def test_an_address_without_a_plan_says_so(open_shown: Any, shown: Shown) -> None:
    page = opened(open_shown, shown, "#/plan/", "error")
    assert page.get_by_role("alert").inner_text().startswith("The address names no plan.")


def test_a_point_says_whose_time_it_took_and_whose_packets_are_listed(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/run/{flows}/point/all_instruments?from=0&to=2000000"), "figures")
    page.get_by_text("What was asked, and files").click()
    assert page.get_by_text(" of the point's own time").is_visible(), "it is virtual in the lab alone"
    page.get_by_text("Packets in this time").click()
    lane = page.get_by_label("connection").input_value()
    page.get_by_text(f"in all of {lane}.").wait_for()
    page.goto(shown.at("#/run/{sweep}/point/{broken}"))
    page.get_by_text("No packets were recorded").wait_for()
    page.get_by_text("What was asked, and files").click()
    assert page.locator("main dt").all_inner_texts() == ["Took"], "it has no digest"


def test_points_without_packets_are_not_called_the_same(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/compare?a={sweep}/{broken}&b={sweep}/{broken}"), "figures")
    assert page.get_by_text("Neither has a digest: no packet was recorded.").count() == 1
    assert page.get_by_text("every packet is the same").count() == 0


def test_on_paper_a_figure_stands_with_its_title_and_nothing_is_to_be_pressed(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/compare?a={two}/loss&b={two}/ack_owed"), "all")
    page.set_viewport_size({"width": 700, "height": 900})
    page.emulate_media(media="print")
    assert not page.get_by_role("toolbar").is_visible()
    assert not page.get_by_role("searchbox").is_visible()
    figures = page.locator("figure", has=page.locator("canvas"))
    assert set(figures.evaluate_all("all => all.map((one) => getComputedStyle(one).breakInside)")) == {"avoid"}
    blank = "all => all.map((one) => one.offsetHeight - one.querySelector('canvas').offsetHeight)"
    assert max(page.locator(".plot", has=page.locator("canvas")).evaluate_all(blank)) < 10


def test_what_a_run_changed_of_its_plan_is_in_the_lists(open_shown: Any, shown: Shown) -> None:
    for place, what in (("", "runs"), ("#/plan/flows", "plan"), ("#/run/{flows}", "run")):
        page = opened(open_shown, shown, place, what)
        assert page.get_by_text("--set a.bytes=1MB", exact=True).count() == 1


def test_a_comparison_of_two_runs_says_where_their_packets_differ_first(open_shown: Any, tmp_path: Path) -> None:
    first, second = make_run(tmp_path, 1), make_run(tmp_path, 2, packets=100)
    with serving(tmp_path) as lines:
        page = open_shown(f"{lines[1].split()[1]}#/compare?a={first.name}/loss&b={second.name}/loss", "all")
        text = page.get_by_text("First difference").inner_text()
        assert text.startswith("First difference, A → B: packet 100 at ")
        page.get_by_role("button", name="show it in the figures").click()
        at = 1e6 * float(text.split(" at ")[1].split(" ms")[0])
        page.wait_for_url("**from=*")
        view = {name: float(page.url.split(f"{name}=")[1].split("&")[0]) for name in ("from", "to")}
        assert view["from"] < at < view["to"] == pytest.approx(view["from"] + 1e7)
        page.goto(f"{lines[1].split()[1]}#/compare?a={first.name}/loss&b={first.name}/ack_owed")
        page.get_by_role("link", name="ack_owed").first.wait_for()
        page.get_by_text("First difference").wait_for(state="detached")
