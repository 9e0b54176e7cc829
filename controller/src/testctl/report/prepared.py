# SPDX-License-Identifier: Apache-2.0
"""Data of points for report.html that is made while other points still run, by the worker of each."""

from __future__ import annotations

from pathlib import Path

from testctl.report.page import point_data
from testctl.report.write import DRAWN as MOST
from testctl.results.reader import load_point
from testctl.results.work import WORK

DRAWN = "drawn"
"""Below WORK: a file for each point, under its id.  Without this directory nothing is prepared."""


def begin_drawing(run: Path) -> None:
    """Have the points of this run in progress prepared."""
    (run / WORK / DRAWN).mkdir()


def prepare(place: Path) -> None:
    """Prepare a point of a run in progress, if its run wants that: its directory is finished, and is only read.

    Of the points that pass so far only the first MOST are prepared: no more are drawn (report/write.py).  What fails
    here is left to the end of the run, which draws the point again and reports it.
    """
    drawn = place.parents[1] / WORK / DRAWN
    if not drawn.is_dir():
        return
    try:
        point = load_point(place)
        if point.verdict == "pass" and sum(1 for _ in drawn.iterdir()) >= MOST:
            return
        text = point_data(point)
        if text is not None:
            (drawn / place.name).write_text(text, encoding="ascii")
    except Exception:  # noqa: BLE001  a point's results must not depend on its figures
        (drawn / place.name).unlink(missing_ok=True)


def prepared(run: Path) -> dict[str, str]:
    """What was prepared of a run in progress, by point id."""
    drawn = run / WORK / DRAWN
    return {path.name: path.read_text(encoding="ascii") for path in sorted(drawn.iterdir())} if drawn.is_dir() else {}
