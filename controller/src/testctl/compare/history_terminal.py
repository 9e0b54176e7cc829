# SPDX-License-Identifier: Apache-2.0
"""Prints histories: those with a change, latest first; the others are only counted."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from testctl.compare.deltas import change_words, value_words
from testctl.compare.history import Night, Trend
from testctl.compare.stats.change_points import ALPHA, ENOUGH
from testctl.compare.terminal import say, tuple_words
from testctl.execution.provenance import LAB


def print_history(
    plan: str, runs: Sequence[Night], trends: Sequence[Trend], steady: bool, least_runs: int, console: Console
) -> None:
    """steady: also histories of one level."""
    say(console, f"{plan} on {runs[-1].testbed}: {len(runs)} runs, {runs[0].started} to {runs[-1].started}")
    shown = [one for one in trends if steady or len(one.levels) > 1]
    shown.sort(key=lambda one: one.runs[one.levels[-1].first].started if len(one.levels) > 1 else "", reverse=True)
    point = ""
    for one in shown:
        if one.id != point:
            point = one.id
            say(console, f"\n{point}  {tuple_words(one.tuples)}")
        _print_trend(one, console)
    few = sum(not one.enough for one in trends)
    say(console, f"\n{len(trends)} histories, {sum(len(one.levels) > 1 for one in trends)} with a change")
    if not trends:
        say(console, f"no point has the metric in {least_runs} runs or more")
    if few:
        say(console, f"{few} of them have fewer than {ENOUGH} runs: no change could be found")
    if runs[-1].testbed != LAB and len(trends) - few:
        say(console, f"by chance alone {ALPHA:.0%} of {len(trends) - few} would show one")


def _print_trend(one: Trend, console: Console) -> None:
    first = one.levels[0]
    say(console, f"  {one.flow} {one.metric}: {value_words(first.median)} ({first.count} runs)")
    for level in one.levels[1:]:
        run, before = one.runs[level.first], one.runs[level.first - 1]
        way = "" if level.direction == "other" else f", {level.direction}"
        code = "the same code" if run.commit == before.commit else f"commit {before.commit[:12]} → {run.commit[:12]}"
        kernels = "" if run.kernels == before.kernels else f", kernels {before.kernels} → {run.kernels}"
        change = change_words(level.relative) or "from 0"
        say(
            console,
            f"    → {value_words(level.median)} ({level.count} runs; {change}{way}) since {run.name}: {code}{kernels}",
        )
