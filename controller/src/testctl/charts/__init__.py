# SPDX-License-Identifier: Apache-2.0
"""Figures as Vega-Lite specifications, which are the same in the browser and in written files."""

from testctl.charts.chart import Chart, Columns, cached, drawing, save, vega_script

__all__ = ["Chart", "Columns", "cached", "drawing", "save", "vega_script"]
