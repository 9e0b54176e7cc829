# SPDX-License-Identifier: Apache-2.0
"""Files of the figures that a plan asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from testctl.charts import Chart, drawing, save
from testctl.plan import FigureSpec
from testctl.records import Records
from testctl.report.figure_spec import specs_of
from testctl.report.plan_charts import chart_of
from testctl.results import Run, RunPoint
from testctl.results.atomic import naming_path
from testctl.results.layout import PAPER

KINDS = (".png", ".svg", ".pdf")


def paper_figures(run: Run, out_dir: Path, specs: Sequence[FigureSpec] | None = None) -> list[Path]:
    """The figures a plan declares, side by side in `paper.png` and each alone in `paper-<n>.png`; as .svg and .pdf too.

    specs   by default those of the plan that the run kept
    Throughput panels share one axis, so that they can be compared.  A figure that no point meets says so.
    """
    if specs is None:
        specs = specs_of(run)
    if not specs:
        return []
    kept: dict[str, Records | None] = {}

    def read(point: RunPoint) -> Records | None:
        """Figures in a row are often of one point; no more than one's records are in memory."""
        if point.id not in kept:
            kept.clear()
            kept[point.id] = point.records()
        return kept[point.id]

    charts = one_axis([chart_of(spec, run.points, run.summary, read) for spec in specs])
    with naming_path(out_dir, "the figures were not written; the results are kept"):
        out_dir.mkdir(exist_ok=True)
    columns = 2 if len(charts) in (2, 4) else min(len(charts), 3)
    whole = Path(PAPER).stem
    drawn = {whole: drawing(charts, columns)}
    drawn |= {f"{whole}-{number}": drawing([chart]) for number, chart in enumerate(charts, 1)}
    return [save(svg, out_dir / f"{name}{kind}") for name, svg in drawn.items() for kind in KINDS]


def one_axis(charts: Sequence[Chart]) -> list[Chart]:
    """Throughputs with one range of their axis."""
    ranges = [chart.range for chart in charts if chart.kind == "rate" and chart.range]
    if not ranges:
        return list(charts)
    union = min(low for low, _ in ranges), max(high for _, high in ranges)
    return [replace(chart, range=union) if chart.kind == "rate" else chart for chart in charts]
