# SPDX-License-Identifier: Apache-2.0
"""What a reader sees of figures, by the pixels of screenshots."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image
from testctl.charts.style import RETRANS

from tests.serve.conftest import Shown

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
    page = open_shown(shown.at("#/run/{two}/point/loss") if of == "serve" else shown.reports["two"] + "#p-loss", "all")
    plot = page.locator('[data-figure="seq"]')
    plot.locator("canvas").wait_for()
    picture = pixels(plot)
    assert near(picture[picture.shape[0] // 5 :], RETRANS) >= 12  # below the legend
