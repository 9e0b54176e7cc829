# SPDX-License-Identifier: Apache-2.0
"""What a reader sees of figures, by the pixels of screenshots."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image
from testctl.charts.style import RETRANS

from tests.serve.conftest import Shown, wait

pytestmark = pytest.mark.long


def pixels(element: Any) -> Any:
    """An element's screenshot as (height, width, 3) numbers of 0 to 255."""
    element.scroll_into_view_if_needed()
    return np.asarray(Image.open(io.BytesIO(element.screenshot())).convert("RGB")).astype(int)


def near(picture: Any, colour: str) -> int:
    """How many pixels are of a colour, "#rrggbb", or almost."""
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return int((np.abs(picture - wanted).max(axis=2) < 24).sum())


@pytest.mark.parametrize("of", ["serve", "report"])
def test_retransmissions_are_seen_in_the_figure_of_a_whole_connection(open_shown: Any, shown: Shown, of: str) -> None:
    page = open_shown(shown.at("#/run/{two}/point/loss") if of == "serve" else shown.reports["two"] + "#p-loss")
    wait(page, "all")
    plot = page.locator('[data-figure="seq"]')
    plot.locator(".main-svg").first.wait_for()
    plot.evaluate("one => Plotly.relayout(one, { showlegend: false })")
    with_them = near(pixels(plot), RETRANS)
    plot.evaluate(
        """one => Plotly.restyle(one, { opacity: 0 }, one.data.flatMap(
             (trace, i) => trace.name.startsWith('retransmission') ? [i] : []))"""
    )
    assert with_them - near(pixels(plot), RETRANS) >= 12


def test_figures_of_the_plan_are_dark_on_a_dark_page(open_shown: Any, shown: Shown) -> None:
    light = {}
    for dark in (False, True):
        page = open_shown(shown.reports["sweep"], dark)
        wait(page, "report")
        figures = page.locator("img.paper")
        assert figures.count() > 0
        figures.first.evaluate("one => one.closest('details') && (one.closest('details').open = true)")
        light[dark] = pixels(figures.first).mean()
    assert light[False] > 220
    assert light[True] < 60
