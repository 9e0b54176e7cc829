# SPDX-License-Identifier: Apache-2.0
"""A run of a sweep in a browser: its figures, one that is chosen, and failures first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from controller.tests.support.synthetic_sweep import make_sweep
from tests.serve.conftest import serving, wait


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return make_sweep(tmp_path_factory.mktemp("sweep") / "results", repeat=2)


@pytest.fixture(scope="module")
def address(run: Any) -> Iterator[str]:
    with serving(run.path.parent) as lines:
        yield lines[1].split()[1]


def plots_fit(page: Any) -> int:
    """How many figures are drawn, each as wide as its place."""
    for plot in page.locator(".sweep .plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator("canvas").first.wait_for()
    widths = page.locator(".sweep .plot").evaluate_all(
        "all => all.map((one) => [one.clientWidth, one.querySelector('canvas')?.clientWidth])"
    )
    assert all(0.9 * wide <= drawn <= wide for wide, drawn in widths), widths
    return len(widths)


def test_a_run_begins_with_its_figures_and_its_table_with_failures(run: Any, address: str, open_logged: Any) -> None:
    page = open_logged(f"{address}#/run/{run.name}", "run")
    assert plots_fit(page) == 4
    assert "all 6 with delay=30ms and buffer=15kB" in page.locator("main").inner_text()
    verdicts = page.locator("section[aria-label] ~ .scroll td:nth-child(2), [aria-label=Points] td:nth-child(2)")
    assert "fail" in verdicts.first.inner_text()
    gap = page.locator(".sweep").first.locator("details")
    gap.locator("summary").click()
    assert "no value" in gap.inner_text()


def test_another_figure_is_chosen_and_its_address_can_be_shared(run: Any, address: str, open_logged: Any) -> None:
    page = open_logged(f"{address}#/run/{run.name}", "run")
    page.get_by_text("Another figure").click()
    page.get_by_label("of", exact=True).fill("throughput_bps")
    page.get_by_label("of", exact=True).press("Enter")
    page.get_by_role("heading", name="throughput_bps over switch.delay by switch.buffer for each hosts.cc").wait_for()
    page.locator("details label select").first.select_option("box")
    page.locator("figure.sweep", has_text="throughput_bps over").get_by_text("quartiles").wait_for()
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    wait(page, "run")
    page.locator("figure.sweep", has_text="throughput_bps over").get_by_text("quartiles").wait_for()


def test_a_heat_map_is_as_wide_as_its_place_and_has_its_second_parameter(
    run: Any, address: str, open_logged: Any
) -> None:
    page = open_logged(f"{address}#/run/{run.name}?figure=metric,saturation,switch.delay,,,", "run")
    page.locator("details label select").first.select_option("heatmap")
    page.get_by_role("heading", name="saturation over switch.delay by hosts.cc").wait_for()
    figure = page.locator("figure.sweep", has_text="saturation over switch.delay by hosts.cc")
    figure.get_by_text("mean, from least to greatest").wait_for()
    plot = figure.locator(".plot")
    plot.scroll_into_view_if_needed()
    plot.locator("canvas").wait_for()
    drawn, high = plot.locator("canvas").evaluate("(one) => [one.clientWidth, one.clientHeight]")
    wide = plot.evaluate("(one) => one.clientWidth")
    assert 0.9 * wide <= drawn <= wide
    assert high > 96, "the rows, and above them the legend"
