# SPDX-License-Identifier: Apache-2.0
"""axe-core finds nothing to object to: every page of serve and the report, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.serve.conftest import Shown, after

pytestmark = pytest.mark.long

PAGES = {
    "runs": ("#/", "runs"),
    "run of a sweep": ("#/run/{sweep}", "run"),
    "run": ("#/run/{two}", "run"),
    "cells coloured by a metric": ("#/run/{sweep}?metric=saturation", "run"),
    "point": ("#/run/{two}/point/loss", "all"),
    "point without records": ("#/run/{sweep}/point/{broken}", "figures"),
    "comparison": ("#/compare?a={two}/loss&b={two}/ack_owed", "all"),
    "plan": ("#/plan/two", "plan"),
    "files": ("#/run/{two}/files", "files"),
    "comparison of nothing": ("#/compare", "compare"),
    "trend": ("#/trend/loss", "trend"),
    "plan of one run": ("#/plan/sweep?metric=saturation", "plan"),
    "no such run": ("#/run/none", "error"),
}
REPORTS = {"report of a sweep": "sweep", "report": "two"}

SCREENS = {"light": (False, 1280), "dark and narrow": (True, 390)}

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice", "experimental"],
    "resultTypes": ["violations"],
}
"""Axe's tags: WCAG 2.2 AA, good practice, and rules that axe has not on by itself, as that a name holds its text.

Where it finds no violation it lists one element a rule: a list of all takes four fifths of its time.
"""


def faults(page: Any) -> list[str]:
    """What axe-core finds, each with the first elements that it is found at."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: "
        + "; ".join(f"{node['html'][:160]} {node['failureSummary'][:200]}" for node in one["nodes"][:3])
        for one in found
    ]


@pytest.fixture(scope="module", params=SCREENS)
def window(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    """A page that goes from view to view: axe-core's code is compiled once for all."""
    dark, width = SCREENS[request.param]
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    context.close()


def show(page: Any, address: str, drawn: str) -> None:
    """Go there, without a new document where it is another view of the same page; with all that can be opened open."""
    page.errors.clear()
    after(page, lambda: page.goto(address), drawn)
    page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true; })")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_serve(window: Any, shown: Shown, name: str) -> None:
    address, drawn = PAGES[name]
    show(window, shown.at(address), drawn)
    assert faults(window) == []
    assert window.errors == []


@pytest.mark.parametrize("name", REPORTS)
def test_a_report(window: Any, shown: Shown, name: str) -> None:
    show(window, shown.reports[REPORTS[name]], "run")
    assert faults(window) == []
    assert window.errors == []


def test_the_help(window: Any, shown: Shown) -> None:
    show(window, shown.address, "runs")
    window.keyboard.press("?")
    window.get_by_role("dialog").wait_for()
    assert faults(window) == []
    assert window.errors == []


def test_axe_finds_what_is_wrong(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.address, "runs")
    page.evaluate("() => { document.querySelector('main').innerHTML = '<h1>x</h1><button></button>'; }")
    assert any(fault.startswith("button-name (critical)") for fault in faults(page))
