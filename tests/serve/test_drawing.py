# SPDX-License-Identifier: Apache-2.0
"""When figures are drawn, and what is in them: several connections, silences, nothing but zeros."""

from __future__ import annotations

import re
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from tests.serve.conftest import Shown, after, wait

pytestmark = pytest.mark.long


def test_a_page_can_be_read_before_the_library_of_figures_is_there(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/compare"))
    held: list[Any] = []
    page.route("**/vega.js", lambda route: held.append(route))
    page.evaluate("address => { location.hash = address; }", "/run/{sweep}".format(**shown.names))
    wait(page, "run")
    assert "3 of 34 points" in page.locator("main").inner_text()
    page.get_by_role("region", name="Points", exact=True).get_by_role("button", name="saturation").click()
    assert page.locator("canvas").count() == 0
    page.wait_for_function("() => [...document.scripts].some(one => one.src.endsWith('vega.js'))")
    held[0].continue_()
    page.locator(".sweep .plot canvas").first.wait_for()


def test_a_library_of_figures_that_can_not_be_read_is_asked_for_again(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/compare"))
    page.route("**/vega.js", lambda route: route.abort(), times=1)
    page.evaluate("address => { location.hash = address; }", "/run/{sweep}".format(**shown.names))
    wait(page, "run")
    page.locator(".sweep .plot canvas").nth(2).wait_for()
    assert page.locator(".sweep .plot .error").all_inner_texts() == ["vega.js can't be read: there are no figures."]


def test_figures_in_view_are_drawn_first_and_then_all_for_a_picture_of_the_whole_page(
    open_shown: Any, shown: Shown
) -> None:
    for address in (shown.at("#/run/{sweep}"), shown.reports["sweep"]):
        page = open_shown(address, height=300)
        page.add_init_script(
            "addEventListener('testctl:drawn', () => { window.first = document.querySelectorAll('canvas').length; })"
        )
        page.reload()
        wait(page, "run")
        plots = page.locator(".sweep .plot")
        page.wait_for_function("(count) => document.querySelectorAll('canvas').length === count", arg=plots.count())
        assert page.evaluate("() => window.first") == 0
        assert page.evaluate("() => scrollY") == 0
        with Image.open(BytesIO(page.screenshot(full_page=True))) as picture:
            for box in (plot.bounding_box() for plot in plots.all()):
                x, y = box["x"], box["y"]
                part = picture.convert("L").crop((x, y, x + box["width"], y + box["height"]))
                assert part.getextrema()[0] < 100, "no blank area"


def names(page: Any, figure: str) -> list[str]:
    return list(page.locator(f'[data-figure="{figure}"]').evaluate("({chart}) => chart.legend.map(([name]) => name)"))


def test_connections_are_drawn_over_each_other(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/run/{flows}/point/all_instruments"), "all")
    assert names(page, "cwnd")[0] == "window"
    after(page, lambda: page.get_by_role("combobox", name="and", exact=True).select_option("brief/0"), "all")
    assert {"bulk/0 window", "brief/0 window"} <= set(names(page, "cwnd"))
    assert {"bulk/0", "brief/0"} <= set(names(page, "rtt"))
    colours = page.locator('[data-figure="rtt"]').evaluate("({chart}) => chart.legend.map(([, colour]) => colour)")
    assert len(set(colours)) == 2
    assert "lane=bulk%2F0%2Cbrief%2F0" in page.url
    page.reload()
    wait(page, "all")
    assert {"bulk/0", "brief/0"} <= set(names(page, "rtt"))


def test_the_report_draws_connections_over_each_other(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.reports["flows"] + "#p-all_instruments", "all")
    after(page, lambda: page.get_by_role("combobox", name="and", exact=True).select_option("brief/0"), "all")
    assert {"bulk/0", "brief/0"} <= set(names(page, "rtt"))


def test_the_last_value_is_held_through_a_silence(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/run/{two}/point/loss?from=20000000&to=21000000"), "all")
    for name in ("rtt", "cwnd"):
        plot = page.locator(f'[data-figure="{name}"]')
        crossing = plot.evaluate(
            """({chart}) => Object.values(chart.data).some(({t, x2}) => t.some((at, i) =>
                 at <= chart.from && (x2 ? x2[i] : t[i + 1] ?? 0) >= chart.to))"""
        )
        assert crossing, name


def test_a_figure_of_zeros_says_so_in_a_line(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/run/{two}/point/loss"), "all")
    plot = page.locator('[data-figure="own_queue"]')
    assert plot.inner_text() == "0 throughout this time."
    assert plot.bounding_box()["height"] < 60


@pytest.mark.parametrize("width", [320, 390])
def test_a_trend_takes_the_width_of_a_narrow_screen(open_shown: Any, shown: Shown, width: int) -> None:
    page = open_shown(shown.at("#/trend/loss"), "trend", width=width)
    assert page.evaluate("() => document.documentElement.scrollWidth") == width
    assert page.locator('[data-figure="trend"]').bounding_box()["width"] > width * 0.85


def test_a_trend_of_equal_values_has_an_axis_that_can_be_read(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/trend/loss"), "trend")
    low, high = page.locator('[data-figure="trend"]').evaluate(
        "({chart}) => chart.spec.layer.find(({mark}) => mark.type === 'line').encoding.y.scale.domain"
    )
    assert high - low > 0.01 * high


def test_the_pointer_s_line_is_in_all_figures_with_values_and_the_cause_of_a_stall(
    open_shown: Any, shown: Shown
) -> None:
    for address in (shown.at("#/run/{two}/point/loss"), shown.reports["two"] + "#p-loss"):
        page = open_shown(address, "all", width=390)
        plot = page.locator('[data-figure="seq"]')
        low, high, cause = plot.evaluate(
            """({chart}) => { const at = (t) => (t - chart.from) / (chart.to - chart.from),
                 {t, x2, label} = Object.values(chart.data).find(({x2, label}) => x2 && label),
                 i = t.map((low, n) => n).sort((p, q) => x2[q] - t[q] - x2[p] + t[p])[0];
                 return [at(t[i]), at(x2[i]), label[i]]; }"""
        )
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        page.mouse.move(box["x"] + 48 + (box["width"] - 60) * (low + high) / 2, box["y"] + 100)
        values = page.locator("figure:has(canvas):has(.crosshair) .value").all_inner_texts()
        assert len(values) > 3
        assert all(re.match(r"[\d.]+ s: .", text) for text in values), values
        assert cause in plot.locator("xpath=ancestor::figure").locator(".value").inner_text()
        assert all(line.is_visible() for line in page.locator("figure:has(canvas) .crosshair").all())


def test_serve_and_the_report_have_other_bins_and_the_other_look(open_shown: Any, shown: Shown) -> None:
    for address in (shown.at("#/run/{flows}/point/all_instruments"), shown.reports["flows"] + "#p-all_instruments"):
        page = open_shown(address, "all")
        bins = page.get_by_role("combobox", name="bins")
        after(page, partial(bins.select_option, "10 ms"), "all")
        plot = page.locator('[data-figure="throughput"]')
        assert "bins of 10 ms" in plot.locator("xpath=ancestor::figure").locator("figcaption").inner_text()
        assert "bin=10000000" in page.url
        page.get_by_role("button", name="Light or dark").click()
        page.locator('[data-figure="throughput"][data-colours="dark"] canvas').wait_for()
        assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
        page.reload()
        page.locator('[data-figure="throughput"][data-colours="dark"] canvas').wait_for()
