# SPDX-License-Identifier: Apache-2.0
"""Figures as Vega-Lite specifications: what the browser draws and what is written to files are the same."""

from testctl.charts.chart import KINDS, Chart, Columns, save, vega_script

__all__ = ["KINDS", "Chart", "Columns", "save", "vega_script"]
