# SPDX-License-Identifier: Apache-2.0
"""testctl reproduce."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from testctl_agent.spec.errors import PlanError

from testctl.cli import complete
from testctl.cli.analyse import Captured, Only
from testctl.cli.interrupt import INTERRUPTED, interruptible
from testctl.cli.options import AsJson

if TYPE_CHECKING:
    from testctl.reproduce.search import Trial


def reproduce(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN|FILE", help="a run's directory, or a capture", autocompletion=complete.runs),
    ],
    point: Annotated[
        str | None,
        typer.Argument(
            metavar="[POINT|FILE]",
            help="the point, not needed of one alone; the capture of the other end",
            autocompletion=complete.points,
        ),
    ] = None,
    at: Captured = None,
    only: Only = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PLAN", help="the plan to write; without it printed")
    ] = None,
    run_it: Annotated[
        bool, typer.Option("--run", help="run its candidates in the lab, and compare each with the packets")
    ] = False,
    most: Annotated[int, typer.Option("--max-runs", min=1, help="with --run: end after so many candidates")] = 40,
    as_json: AsJson = False,
) -> None:
    """Infer a plan from the packets of a point or of anybody's capture: tuples of what was seen, packet actions of what
    was lost.

    With --run the candidates are run, the likeliest first, and the plan is of the closest one.  Exit 1 when not all
    packets at the sender are the same, 3 when none could be run.
    """
    from testctl.cli.analyse import analysed
    from testctl.reproduce.command import infer_point
    from testctl.reproduce.report import result_text, to_json
    from testctl.reproduce.search import search
    from testctl.reproduce.write import check_plan_file, plan_text, write_plan
    from testctl.results import RunWriter
    from testctl.system.temporary import temporary

    if as_json and not run_it and out is None:
        raise PlanError("--json: want --run or --out; without them the plan is printed")
    if out is not None:
        check_plan_file(out)
    if run.is_dir():
        if at or only:
            raise PlanError(f"--at, --only: want a capture with it; got the directory {run}")
        records, inferred, name = infer_point(run, point)
    else:
        with temporary("testctl-reproduce-") as place:
            files = [run] if point is None else [run, Path(point)]
            whole, _ = analysed(files, at, only or (), lambda need: RunWriter.create_at(place / "capture", need=need))
            records, inferred, _ = infer_point(whole.path, None)
            name = " and ".join(file.name for file in files)
    if not run_it:
        written = plan_text(inferred, name)
        if out is None:
            print(written, end="")
        else:
            write_plan(out, written)
            print(json.dumps({"plan": str(out)}) if as_json else f"wrote {out}\nnext: testctl plan {out}")
        return
    progress = Console(stderr=True)
    trials: list[Trial] = []

    def done(trial: Trial) -> None:
        trials.append(trial)
        line = f"[{len(trials)}] {trial.text()}"
        progress.print(line, soft_wrap=True, highlight=False, markup=False)

    interrupted = False
    with interruptible():
        try:
            search(inferred, records, done, most)
        except KeyboardInterrupt:
            interrupted = True
    closest = max((trial for trial in trials if trial.alignment), key=lambda trial: trial.rank, default=None)
    if closest is None:
        out = None
    elif out is not None:
        write_plan(out, plan_text(inferred, name, closest.tuples, closest.text()))
    print(
        json.dumps(to_json(inferred, trials, closest, out), indent=1)
        if as_json
        else result_text(inferred, trials, closest, out)
    )
    sys.exit(INTERRUPTED if interrupted else 3 if closest is None else 0 if closest.whole else 1)
