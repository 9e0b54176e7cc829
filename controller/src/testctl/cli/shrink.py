# SPDX-License-Identifier: Apache-2.0
"""testctl shrink."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from testctl.cli.interrupt import INTERRUPTED, interruptible
from testctl.cli.options import AsJson, Commands, Jobs
from testctl.cli.shows import PointId, RunDir

if TYPE_CHECKING:
    from testctl.shrink.trials import Trial


def shrink(
    run: RunDir,
    point: PointId,
    expectation: Annotated[
        str,
        typer.Option(
            "--expectation",
            metavar="N",
            help="number or name in the plan, or a rule's; default: the first that fails, or the rule that is broken",
        ),
    ] = "",
    holds: Annotated[bool, typer.Option("--holds", help="ask what makes the point meet it instead")] = False,
    jobs: Jobs = 1,
    probes: Annotated[int, typer.Option("--probes", min=0, help="values tried of a number, in each direction")] = 6,
    max_runs: Annotated[int, typer.Option("--max-runs", min=1, help="end after so many runs of a point")] = 500,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="default: results/shrink/<run>-<point>")
    ] = None,
    commands: Commands = False,
    as_json: AsJson = False,
) -> None:
    """Find the smallest set of a point's tuples that still fails, what does not matter, and the ranges of values."""
    from testctl.results import load_run
    from testctl.shrink.case import open_case
    from testctl.shrink.command import run_search
    from testctl.shrink.write import print_found, to_json

    case = open_case(load_run(run), point, expectation, holds, commands)
    directory = out or Path("results") / "shrink" / f"{case.run.name}-{case.point.id}"
    with interruptible():
        print_trial = _Lines(Console(stderr=True), len(case.tuples))
        console = Console(stderr=as_json)
        for line in (
            f"point {case.point.id}: {case.found.reason or case.found.verdict}",
            f"by: {case.judged_by}",
        ):
            console.print(line, soft_wrap=True, highlight=False, markup=False)
        ended = run_search(case, directory, jobs=jobs, probes=probes, most=max_runs, told_of=print_trial)
        if as_json:
            print(json.dumps(to_json(case, ended.found, ended.trials, ended.plan), indent=1))
        else:
            print_found(case, ended.found, ended.trials, ended.plan, console)
        if ended.why:
            print(f"{ended.why}; what was found is kept in {directory}", file=sys.stderr)
        sys.exit(INTERRUPTED if ended.interrupted else 0)


class _Lines:
    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._count = 0

    def __call__(self, trial: Trial) -> None:
        self._count += 1
        took = f" {trial.wall_s:.1f} s" if trial.ran else "" if trial.answer == "unclear" else " (known)"
        reason = f": {trial.words}" if trial.answer == "unclear" and trial.words else ""
        names = " ".join(f"{entity}.{param}={value}" for entity, param, value in trial.tuples) or "nothing"
        self._console.print(
            f"[{self._count}] {trial.answer}{took} with {len(trial.tuples)} of {self._total}: {names}{reason}",
            soft_wrap=True, highlight=False, markup=False,
        )  # fmt: skip
