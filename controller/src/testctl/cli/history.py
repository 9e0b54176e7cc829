# SPDX-License-Identifier: Apache-2.0
"""testctl history."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from testctl.cli.shows import AsJson


def history(
    plan: Annotated[str, typer.Option("--plan", metavar="NAME", help="whose runs (default: the newest run's)")] = "",
    metric: Annotated[
        str, typer.Option("--metric", help="this one, steady or not (default: what changed and prefers a direction)")
    ] = "",
    flow: Annotated[str, typer.Option("--flow", help="of this flow alone")] = "",
    runs: Annotated[int, typer.Option("--runs", min=2, metavar="N", help="points that so many runs measured")] = 3,
    results: Annotated[Path, typer.Option("--results", help="where runs are kept")] = Path("results"),
    seed: Annotated[int, typer.Option("--seed", min=0, help="of the permutations")] = 1,
    as_json: AsJson = False,
) -> None:
    """Since when a metric is what it is: every point's levels over all runs of a plan, and which commit began each."""
    from testctl_agent.spec.errors import PlanError

    from testctl.compare.history import nights, trends
    from testctl.compare.history_terminal import print_history
    from testctl.metrics import metric_names

    if metric and metric not in metric_names():
        raise PlanError(f"--metric: want a metric's name, see testctl metrics; got {metric}")
    name, bed, found, damaged = nights(results, plan)
    for words in damaged:
        print(f"passed over: {words}", file=sys.stderr)
    lines = trends(found, metric, flow, runs, seed)
    if as_json:
        said = {
            "plan": name,
            "testbed": bed,
            "runs": [night.to_json() for night in found],
            "trends": [one.to_json() for one in lines],
        }
        print(json.dumps(said, indent=1))
    else:
        print_history(name, found, lines, bool(metric), runs, Console())


def add_to(app: typer.Typer) -> None:
    app.command()(history)
