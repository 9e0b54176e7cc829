# SPDX-License-Identifier: Apache-2.0
"""A point with requests and without packets, in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from controller.tests.serve.test_requests import requests_run
from tests.serve.conftest import serving


def test_its_page_has_the_completion_times(tmp_path: Path, open_shown: Callable[..., Any]) -> None:
    point = requests_run(tmp_path)
    with serving(tmp_path) as lines:
        page = open_shown(f"{lines[1].split()[1]}#/run/{point.parents[1].name}/point/{point.name}", "figures")
        assert "nothing to draw" not in page.locator("main").inner_text()
        titles = ("Completion times over time", "Completion times", "Slowdown by size")
        for title in titles:
            figure = page.get_by_role("figure").filter(has=page.get_by_text(title, exact=True))
            figure.locator("canvas").first.wait_for()
