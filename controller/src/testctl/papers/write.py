# SPDX-License-Identifier: Apache-2.0
"""Writes the scorecard: scorecard.json, scorecard.png and .svg, and the self-contained scorecard.html."""

from __future__ import annotations

import base64
import os
from itertools import groupby
from pathlib import Path

from markupsafe import Markup
from testctl_agent.spec.errors import PlanError
from testctl_agent.system import durable

from testctl.charts import drawing, save
from testctl.charts.style import CLAIM_LOOKS, VERDICT_LOOKS
from testctl.core.units import show_time
from testctl.papers.figure import scorecard_charts
from testctl.papers.scorecard import Scorecard
from testctl.report.claims import BADGES, claim_rows
from testctl.report.looks import own_file, rendered
from testctl.report.run_page import flat
from testctl.results import check_place
from testctl.results.atomic import naming_path, write_json, write_text
from testctl.results.layout import REPORT, SCORECARD

_ROOM = 10_000_000


def check_out(out: Path, again: bool) -> None:
    """Refuse, before any run, a directory that has a scorecard (unless `again`) or is not writable.

    Raises PlanError.
    """
    there = out / f"{SCORECARD}.json"
    if there.exists() and not again:
        raise PlanError(f"{there}: the scorecard exists already; it is written again only with --resume")
    check_place(out, _ROOM)


def write_scorecard(card: Scorecard, out: Path) -> list[Path]:
    """Write the files into a directory, each atomically; returns their paths.  Raises TestbedError."""
    data, page, figure = (out / f"{SCORECARD}.{kind}" for kind in ("json", "html", "png"))
    with naming_path(out, "the scorecard was not written; the runs are kept"):
        durable.make_directory(out)
        svg = drawing(scorecard_charts(card), 1)
        for path in (figure.with_suffix(".svg"), figure):
            save(svg, path)
        write_text(page, render(card, out, svg.encode()))
        write_json(data, card.to_json())
    return [page, figure, data]


def render(card: Scorecard, out: Path, figure: bytes) -> str:
    """The page; links to the runs' reports are relative to `out`."""
    groups = {plan: claim_rows(list(claims)) for plan, claims in groupby(card.claims, key=lambda claim: claim.plan)}
    return rendered(
        "papers/scorecard.html",
        card=card,
        counts=[(verdict, count, BADGES[verdict], CLAIM_LOOKS[verdict].sign) for verdict, count in card.counts.items()],
        looks=VERDICT_LOOKS,
        took=show_time(card.wall_s * 1e9),
        plans=[
            {
                "name": run.summary["plan"],
                "about": run.summary.get("about", ""),
                "report": os.path.relpath(run.path / REPORT, out.resolve()),
                "run": run.name,
                "digest": run.digest,
                "points": len(run.points),
                "rows": groups.get(str(run.summary["plan"]), []),
            }
            for run in card.runs
        ],
        versions=flat(card.versions),
        figure=Markup("data:image/svg+xml;base64," + base64.b64encode(figure).decode("ascii")),
        css=Markup(own_file("serve/static/app.css") + own_file("papers/scorecard.css")),
    )
