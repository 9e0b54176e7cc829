# SPDX-License-Identifier: Apache-2.0
"""Writes scorecard.html, one file in serve's look, and scorecard.json."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from markupsafe import Markup
from testctl_agent.spec.errors import PlanError
from testctl_agent.system import durable

from testctl.certify.card import FEW, FILES, Card, Cell
from testctl.certify.criteria import NOT_COVERED
from testctl.charts import drawing
from testctl.charts.style import VERDICT_LOOKS
from testctl.core.units import show_time
from testctl.plan import FigureSpec
from testctl.report.looks import own_file, rendered
from testctl.report.plan_charts import chart_of
from testctl.results import check_place
from testctl.results.atomic import naming_path, write_json, write_text
from testctl.results.layout import REPORT

_ROOM = 100_000_000
_FIGURES: dict[tuple[Path, str], Markup] = {}
"""By the run and the point; drawn once."""


def check_out(out: Path) -> None:
    """Refuse, before any run, a directory that has something else in it, or that is not writable.  Raises PlanError."""
    if out.exists() and (not out.is_dir() or any(entry.name not in FILES.values() for entry in out.iterdir())):
        raise PlanError(f"--out {out}: want a new directory, or one with a scorecard alone; got something else")
    check_place(out, _ROOM)


def write(card: Card, out: Path) -> Path:
    """Returns the page.  Raises TestbedError."""
    with naming_path(out, "the scorecard was not written; the runs are kept"):
        durable.make_directory(out)
        write_text(out / FILES["html"], render(card, out))
        write_json(out / FILES["json"], card.to_json())
    return out / FILES["html"]


def render(card: Card, out: Path) -> str:
    """Links to the runs' reports are relative to `out`."""
    for cell in card.own:
        if cell.verdict == "fail" and (cell.run.path, cell.point) not in _FIGURES:  # the card is written several times
            _FIGURES[cell.run.path, cell.point] = _figure(cell)

    def link(cell: Cell) -> str:
        report = os.path.relpath(cell.run.path / REPORT, out.resolve())
        return f"{report}#/run/{cell.run.name}" + (f"/point/{cell.point}" if cell.point else "")

    return rendered(
        "certify/scorecard.html",
        card=card,
        rows=list(zip(*card.cells.values(), strict=True)),
        counts=card.counts,
        looks=VERDICT_LOOKS,
        few=FEW,
        took=show_time(card.wall_s * 1e9),
        not_covered=NOT_COVERED,
        figures=_FIGURES,
        link=link,
        css=Markup("".join(map(own_file, ("serve/static/app.css", "papers/scorecard.css", "certify/scorecard.css")))),
    )


def _figure(cell: Cell) -> Markup:
    """What shows it, of the point where it is worst, as the source of an image: the queue, or the throughput."""
    kind = "queue" if cell.metric.startswith(("switch_", "loss_", "fct_")) else "throughput"
    (point,) = (point for point in cell.run.points if point.id == cell.point)
    swept = {factor.key for factor in cell.criterion.plan.factors}
    values = " ".join(
        f"{entity}.{param}={value}" for entity, param, value in point.tuples if f"{entity}.{param}" in swept
    )
    chart = chart_of(FigureSpec(f"{kind}: {values}", kind, bin_ns=200_000_000), [point], cell.run.summary)
    return Markup("data:image/svg+xml;base64," + base64.b64encode(drawing([chart]).encode()).decode("ascii"))
