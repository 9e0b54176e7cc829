# SPDX-License-Identifier: Apache-2.0
"""axe-core finds nothing to object to: every page of serve and the report, light and dark, wide and narrow."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.serve.conftest import Shown, wait

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

SCREENS = pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 390)], ids=["light", "dark and narrow"])

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice", "experimental"]}
"""Axe's tags: WCAG 2.2 AA, good practice, and rules that axe has not on by itself, as that a name holds its text."""


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
def test_a_page_of_serve(open_shown: Any, shown: Shown, name: str, dark: bool, width: int) -> None:
    address, drawn = PAGES[name]
    page = open_shown(shown.address + address.format(**shown.names), dark, width)
    wait(page, drawn)
    open_all(page)
    assert faults(page) == []


@SCREENS
@pytest.mark.parametrize("name", REPORTS)
def test_a_report(open_shown: Any, shown: Shown, name: str, dark: bool, width: int) -> None:
    page = open_shown(shown.reports[REPORTS[name]], dark, width)
    wait(page, "report")
    open_all(page)
    page.locator(".plot .main-svg").first.wait_for()
    assert faults(page) == []


@SCREENS
def test_the_help(open_shown: Any, shown: Shown, dark: bool, width: int) -> None:
    page = open_shown(shown.address, dark, width)
    wait(page, "runs")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    assert faults(page) == []


def test_axe_finds_what_is_wrong(open_shown: Any, shown: Shown) -> None:
    page = open_shown(shown.address, False, 1280)
    wait(page, "runs")
    page.evaluate("() => { document.querySelector('main').innerHTML = '<h1>x</h1><button></button>'; }")
    assert any(fault.startswith("button-name (critical)") for fault in faults(page))
