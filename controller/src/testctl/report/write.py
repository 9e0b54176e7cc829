# SPDX-License-Identifier: Apache-2.0
"""Writes the report of a run: report.html and figures/, drawn from the records on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from testctl.plan import FigureSpec
from testctl.report.figure_spec import specs_of
from testctl.report.page import point_data, render_report
from testctl.results import Run, RunPoint, load_run
from testctl.results.atomic import naming_path, write_text
from testctl.results.layout import FIGURES, REPORT
from testctl.results.reader import check_plain
from testctl.system.worker_pool import workers

DRAWN = 120
"""Points that are drawn at most, those that did not pass first; a page of more would be too large to open."""


def write_report(
    of: Run | Path,
    *,
    specs: Sequence[FigureSpec] | None = None,
    figures: bool = True,
    jobs: int = 1,
    tell: Callable[[str], None] | None = None,
    data: Mapping[str, str] | None = None,
) -> Path:
    """Write report.html (and the plan's figures/*.png) into a run's directory; returns the page's path.

    of     the run or its directory; one in progress has its summary with it
    specs  the plan's figures, by default as the kept plan declares them
    jobs   processes that draw
    tell   called with the id of each point when it is drawn
    data   point_data of points that are drawn already, by id
    Of a run with more than DRAWN points only the most telling are drawn; all are in the tables.
    Records are read one point at a time.  Raises TestbedError, PlanError.
    """
    run = load_run(of) if isinstance(of, Path) else of
    out = run.path / FIGURES
    if figures:
        with naming_path(out, "the figures were not written; the results are kept"):
            out.mkdir(exist_ok=True)
        check_plain(out)
    work = most_telling(run.points, DRAWN)
    found: dict[str, str | None] = {point.id: data[point.id] for point in work if data and point.id in data}
    missing = [point for point in work if point.id not in found]
    tell = tell or (lambda _: None)
    for name in found:
        tell(name)
    for point, text in zip(missing, _drawn(missing, jobs), strict=True):
        found[point.id] = text
        tell(point.id)
    specs = specs_of(run) if figures and specs is None else specs
    if figures and specs:
        from testctl.report.figures import paper_figures

        paper_figures(run, out, specs)
    page = run.path / REPORT
    with naming_path(page, "the report was not written; the results are kept"):
        write_text(page, render_report(run, found))
    return page


def most_telling(points: Sequence[RunPoint], most: int) -> list[RunPoint]:
    """At most so many that have records, before all those that did not pass; the rest has nothing to be drawn."""
    recorded = [point for point in points if point.has_records]
    kept = {point.id for point in sorted(recorded, key=lambda point: point.verdict == "pass")[:most]}
    return [point for point in points if point.id in kept or not point.has_records]


def _drawn(work: Sequence[RunPoint], jobs: int) -> Iterator[str | None]:
    """The page's data of each point, in order."""
    if jobs < 2 or len(work) < 2:
        yield from map(point_data, work)
        return
    with workers(min(jobs, len(work))) as pool:
        yield from pool.map(point_data, work)
