# SPDX-License-Identifier: Apache-2.0
"""testctl history."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from testctl_agent.spec.errors import PlanError

from testctl.cli import complete
from testctl.cli.options import AsJson, Results
from testctl.core.testbed_kind import kind_of
from testctl.core.words import counted

if TYPE_CHECKING:
    from testctl.compare.history import PastRun, Trend


def history(
    plan: Annotated[str, typer.Option("--plan", metavar="NAME", help="whose runs (default: the newest run's)")] = "",
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            help="this one, steady or not (default: what changed and prefers a direction)",
            autocompletion=complete.metrics,
        ),
    ] = "",
    flow: Annotated[str, typer.Option("--flow", help="of this flow alone")] = "",
    runs: Annotated[int, typer.Option("--runs", min=2, metavar="N", help="points that so many runs measured")] = 3,
    results: Results = Path("results"),
    seed: Annotated[int, typer.Option("--seed", min=0, help="of the permutations")] = 1,
    as_json: AsJson = False,
) -> None:
    """Since when a metric is what it is: every point's levels over all runs of a plan, and which commit began each."""
    from testctl.compare.history import past_runs, trends
    from testctl.metrics import metric_names

    if metric and metric not in metric_names():
        raise PlanError(f"--metric: want a metric's name, see testctl metrics; got {metric}")
    name, testbed, past, damaged = past_runs(results, plan)
    for damage in damaged:
        print(f"passed over: {damage}", file=sys.stderr)
    histories = trends(past, metric, flow, runs, seed)
    if as_json:
        document = {
            "plan": name,
            "testbed": testbed,
            "runs": [run.to_json() for run in past],
            "trends": [trend.to_json() for trend in histories],
        }
        print(json.dumps(document, indent=1))
    else:
        print_history(name, past, histories, bool(metric), runs)


def print_history(plan: str, runs: Sequence[PastRun], trends: Sequence[Trend], steady: bool, least_runs: int) -> None:
    """What changed, newest first; steady: also histories of one level, which are else only counted."""
    from testctl.compare.stats.change_points import ALPHA, ENOUGH
    from testctl.compare.terminal import say, tuple_words

    console = Console()
    say(console, f"{plan} on {runs[-1].testbed}: {counted(len(runs), 'run')}, {runs[0].started} to {runs[-1].started}")
    changed = [trend for trend in trends if len(trend.levels) > 1]
    changed.sort(key=lambda trend: trend.runs[trend.levels[-1].first].started, reverse=True)
    point = ""
    for trend in [*changed, *(trend for trend in trends if steady and len(trend.levels) <= 1)]:
        if trend.id != point:
            point = trend.id
            say(console, f"\n{point}  {tuple_words(trend.tuples)}")
        _print_trend(trend, console)
    few = sum(not trend.enough for trend in trends)
    say(console, f"\n{len(trends)} histories, {len(changed)} with a change")
    if not trends:
        say(console, f"no point has the metric in {least_runs} runs or more")
    if few:
        say(console, f"{few} of them have fewer than {ENOUGH} runs: no change could be found")
    if not kind_of(runs[-1].testbed).deterministic and len(trends) - few:
        say(console, f"by chance alone {ALPHA:.0%} of {len(trends) - few} would show one")


def _print_trend(trend: Trend, console: Console) -> None:
    from testctl.compare.deltas import change_words, value_words
    from testctl.compare.terminal import say

    first = trend.levels[0]
    value = value_words(trend.metric, first.median)
    say(console, f"  {trend.flow} {trend.metric}: {value} ({counted(first.count, 'run')})")
    for level in trend.levels[1:]:
        run, before = trend.runs[level.first], trend.runs[level.first - 1]
        way = "" if level.direction == "other" else f", {level.direction}"
        code = "the same code" if run.commit == before.commit else f"commit {before.commit[:12]} → {run.commit[:12]}"
        kernels = "" if run.kernels == before.kernels else f", kernels {before.kernels} → {run.kernels}"
        change = change_words(level.relative) or "from 0"
        say(
            console,
            f"    → {value_words(trend.metric, level.median)} ({counted(level.count, 'run')}; {change}{way})"
            f" since {run.name}: {code}{kernels}",
        )
