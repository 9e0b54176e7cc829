# SPDX-License-Identifier: Apache-2.0
"""When figures are drawn, and what is in them: several connections, silences, nothing but zeros."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.conftest import Shown, wait

pytestmark = pytest.mark.long


def test_a_page_can_be_read_before_the_library_of_figures_is_there(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/compare"))
    held: list[Any] = []
    page.route("**/plotly.min.js", lambda route: held.append(route))
    page.evaluate("address => { location.hash = address; }", "/run/{sweep}".format(**shown.names))
    wait(page, "run")
    assert "3 of 34 points fail" in page.locator("main").inner_text()
    page.get_by_role("region", name="Points", exact=True).get_by_role("button", name="saturation").click()
    assert page.locator(".main-svg").count() == 0
    page.wait_for_function("() => [...document.scripts].some(one => one.src.endsWith('plotly.min.js'))")
    held[0].continue_()
    page.locator(".sweep .plot .main-svg").first.wait_for()


def test_figures_are_drawn_when_they_come_into_view(open_shown: Any, shown: Shown) -> None:
    for address, what in ((shown.at("#/run/{sweep}"), "run"), (shown.reports["sweep"], "report")):
        page = open_shown(address)
        wait(page, what)
        page.evaluate("() => scrollTo(0, 0)")
        page.locator(".sweep .plot .main-svg").first.wait_for()
        last = page.locator(".sweep .plot").last
        assert last.locator(".main-svg").count() == 0
        last.scroll_into_view_if_needed()
        last.locator(".main-svg").first.wait_for()


def names(page: Any, figure: str) -> list[str]:
    return list(page.locator(f'[data-figure="{figure}"]').evaluate("one => one.data.map(trace => trace.name)"))


def test_connections_are_drawn_over_each_other(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/run/{flows}/point/all_instruments"))
    wait(page, "all")
    assert names(page, "cwnd")[0] == "window"
    page.evaluate("() => { document.documentElement.dataset.drawn = ''; }")
    page.get_by_role("combobox", name="and", exact=True).select_option("brief/0")
    wait(page, "all")
    assert {"bulk/0 window", "brief/0 window"} <= set(names(page, "cwnd"))
    assert {"bulk/0", "brief/0"} <= set(names(page, "rtt"))
    colours = page.locator('[data-figure="rtt"]').evaluate("one => one.data.map(trace => trace.line.color)")
    assert len(set(colours)) == 2
    assert "and=brief" in page.url
    page.reload()
    wait(page, "all")
    assert {"bulk/0", "brief/0"} <= set(names(page, "rtt"))


def test_the_report_draws_connections_over_each_other(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.reports["flows"] + "#p-all_instruments")
    wait(page, "all")
    page.evaluate("() => { document.documentElement.dataset.drawn = ''; }")
    page.get_by_role("combobox", name="and", exact=True).select_option("brief/0")
    wait(page, "all")
    assert {"bulk/0", "brief/0"} <= set(names(page, "rtt"))


def test_the_last_value_is_held_through_a_silence(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/run/{two}/point/loss?from=20000000&to=21000000"))
    wait(page, "all")
    for name in ("rtt", "cwnd"):
        plot = page.locator(f'[data-figure="{name}"]')
        crossing = plot.evaluate(
            """one => one.data.some(({x}) => x.some((at, i) => i && at !== null && x[i - 1] !== null
                 && x[i - 1] <= one.layout.xaxis.range[0] && at >= one.layout.xaxis.range[1]))"""
        )
        assert crossing, name


def test_an_axis_of_zeros_has_whole_units(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/run/{two}/point/loss"))
    wait(page, "all")
    assert page.locator('[data-figure="own_queue"]').evaluate("one => one.layout.yaxis.range") == [0, 1]


@pytest.mark.parametrize("width", [320, 390])
def test_a_trend_takes_the_width_of_a_narrow_screen(open_shown: Any, shown: Shown, width: int) -> None:
    page = open_shown(shown.at("#/trend/loss"), width=width)
    wait(page, "trend")
    assert page.evaluate("() => document.documentElement.scrollWidth") == width
    assert page.locator('[data-figure="trend"]').bounding_box()["width"] > width * 0.85


def test_a_trend_of_equal_values_has_an_axis_that_can_be_read(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.at("#/trend/loss"))
    wait(page, "trend")
    ticks = page.locator('[data-figure="trend"] .ytick text').all_text_contents()
    assert len(ticks) > 2
    assert all(len(text) <= 6 for text in ticks)
    assert len(set(ticks)) == len(ticks)
