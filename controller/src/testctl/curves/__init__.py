# SPDX-License-Identifier: Apache-2.0
"""Curves: what a point's records show over time, one file a curve; every table and figure is made here."""

from testctl.curves.core.figure import (
    EXACT,
    Lane,
    figure,
    figures,
    flows_drawn,
    lanes,
    lines_of,
)
from testctl.curves.core.registry import curves
from testctl.curves.core.spec import CurveSpec, Line
from testctl.curves.core.table import series
from testctl.curves.core.window import Window, round_width, shown_ns

__all__ = [
    "EXACT",
    "CurveSpec",
    "Lane",
    "Line",
    "Window",
    "curves",
    "figure",
    "figures",
    "flows_drawn",
    "lanes",
    "lines_of",
    "round_width",
    "series",
    "shown_ns",
]
