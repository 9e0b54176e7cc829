# SPDX-License-Identifier: Apache-2.0
"""testctl papers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from testctl.cli import complete
from testctl.cli.interrupt import interruptible
from testctl.cli.options import AsJson, Jobs
from testctl.execution.options import Options


def papers(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PLAN]...", help="plans; none: plans/paper/ and plans/rfc/", autocompletion=complete.plans
        ),
    ] = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="NAME", help="run every point on this kernel")
    ] = None,
    jobs: Jobs = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="for the runs and the scorecard (default: results/, results/<time>-papers/)"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="take finished points from earlier runs")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the papers' experiments and hold what they find against what was published.

    Exit 0 when every claim has a verdict and every difference a reason, 1 otherwise.
    """
    from testctl.papers import check_out, load_papers, print_scorecard, run_papers, write_scorecard
    from testctl.report import Progress
    from testctl.results import run_name
    from testctl.testbeds.lab import LabTestbed

    plans = load_papers(files or [], kernel)
    results = out or Path("results")
    place = out or results / run_name("papers")
    check_out(place, resume)
    with interruptible("finished points are kept, go on with --resume"):
        points = [point for plan in plans for point in plan.points]
        lab = LabTestbed.for_points(points, commands=True)
        progress = Progress(len(points), Console(stderr=True))
        card = run_papers(plans, lab, Options(results, None, jobs, resume), progress, kernel)
    written = write_scorecard(card, place)
    if as_json:
        print(json.dumps(card.to_json(), indent=1))
    else:
        print_scorecard(card, written, Console())
    sys.exit(card.exit_code)
