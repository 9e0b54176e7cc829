# SPDX-License-Identifier: Apache-2.0
"""axe-core finds nothing to object to: every page of serve and the report, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from testctl.report import write_report

from controller.tests.serve.conftest import make_run
from controller.tests.support.synthetic_sweep import make_sweep
from tests.serve.conftest import serving, wait

PAGES = {
    "runs": ("#/", "runs"),
    "run of a sweep": ("#/run/{sweep}", "run"),
    "run": ("#/run/{two}", "run"),
    "cells coloured by a metric": ("#/run/{sweep}?metric=saturation", "run"),
    "point": ("#/run/{two}/point/loss", "all"),
    "point without records": ("#/run/{sweep}/point/{broken}", "figures"),
    "comparison": ("#/compare?a={two}/loss&b={two}/ack_owed", "all"),
    "comparison of nothing": ("#/compare", "compare"),
    "trend": ("#/trend/loss", "trend"),
    "no such run": ("#/run/none", "error"),
}
REPORTS = {"report of a sweep": "sweep", "report": "two"}

SCREENS = pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 390)], ids=["light", "dark and narrow"])

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice", "experimental"]}
"""Axe's tags: WCAG 2.2 AA, good practice, and rules that axe has not on by itself, as that a name holds its text."""


@dataclass(frozen=True)
class Shown:
    """A server over runs, their names, and their reports by the same words."""

    address: str
    names: dict[str, str]
    reports: dict[str, str]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """A sweep, and recorded connections of two days."""
    results = tmp_path_factory.mktemp("accessible") / "results"
    sweep = make_sweep(results, day=3)
    two = [make_run(results, day) for day in (1, 2)][-1]
    broken = next(point.id for point in sweep.points if point.verdict == "broken")
    reports = {word: write_report(path).as_uri() for word, path in (("sweep", sweep.path), ("two", two))}
    with serving(results) as lines:
        names = {"sweep": sweep.name, "two": two.name, "broken": broken}
        yield Shown(lines[1].split()[1], names, reports)


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Opens an address in a window."""
    contexts = []

    def start(address: str, dark: bool, width: int) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(address)
        return page

    yield start
    for context in contexts:
        context.close()


def faults(page: Any) -> list[str]:
    """What axe-core finds, each with the first elements that it is found at."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: "
        + "; ".join(f"{node['html'][:160]} {node['failureSummary'][:200]}" for node in one["nodes"][:3])
        for one in found
    ]


def open_all(page: Any) -> None:
    """Open whatever can be opened."""
    page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true; })")


@SCREENS
@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_serve(open_page: Any, shown: Shown, name: str, dark: bool, width: int) -> None:
    address, drawn = PAGES[name]
    page = open_page(shown.address + address.format(**shown.names), dark, width)
    wait(page, drawn)
    open_all(page)
    assert faults(page) == []


@SCREENS
@pytest.mark.parametrize("name", REPORTS)
def test_a_report(open_page: Any, shown: Shown, name: str, dark: bool, width: int) -> None:
    page = open_page(shown.reports[REPORTS[name]], dark, width)
    wait(page, "report")
    open_all(page)
    page.locator(".plot .main-svg").first.wait_for()
    assert faults(page) == []


@SCREENS
def test_the_help(open_page: Any, shown: Shown, dark: bool, width: int) -> None:
    page = open_page(shown.address, dark, width)
    wait(page, "runs")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    assert faults(page) == []


def test_axe_finds_what_is_wrong(open_page: Any, shown: Shown) -> None:
    page = open_page(shown.address, False, 1280)
    wait(page, "runs")
    page.evaluate("() => { document.querySelector('main').innerHTML = '<h1>x</h1><button></button>'; }")
    assert any(fault.startswith("button-name (critical)") for fault in faults(page))
