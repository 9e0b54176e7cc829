# SPDX-License-Identifier: Apache-2.0
"""testctl compare."""

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
from testctl.cli.interrupt import interruptible
from testctl.cli.made_run import made_run
from testctl.cli.options import AsJson
from testctl.cli.runs import Sets, load
from testctl.cli.source import METAVAR, built
from testctl.cli.verdict_files import Junit, Markdown, Sarif
from testctl.execution.options import Options

if TYPE_CHECKING:
    from testctl.compare import Comparison, Statistical
    from testctl.results import Run

MAX_POINTS = 10_000


def compare(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="A", help="the run to compare with; with --source the plan", autocompletion=complete.runs
        ),
    ],
    second: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="the run that may have changed", autocompletion=complete.runs)
    ] = None,
    least: Annotated[
        float, typer.Option("--least", min=0.0, metavar="PERCENT", help="pass over metrics that moved by no more")
    ] = 0.0,
    across_plans: Annotated[
        bool, typer.Option("--across-plans", help="compare the points that runs of two plans share")
    ] = False,
    more_a: Annotated[
        list[Path] | None, typer.Option("--more-a", metavar="RUN", help="another run like A, made in turns with B's")
    ] = None,
    more_b: Annotated[list[Path] | None, typer.Option("--more-b", metavar="RUN", help="another run like B")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="by statistics: compare this one (default: all that prefer a direction)",
            autocompletion=complete.metrics,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="by statistics: of the permutations (default: 1)")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar=METAVAR, help="twice: run the plan A on the kernels of both, and compare those runs"
        ),
    ] = None,
    sets: Sets = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", min=1, max=256, help="with --source: points at once (default: 1)"),
    ] = None,
    results: Annotated[
        Path | None, typer.Option("--results", help="with --source: where runs are kept (default: results)")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="exit 1 when anything differs, better or not")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="print every point that differs; by statistics, all that was compared")
    ] = False,
    junit: Junit = None,
    sarif: Sarif = None,
    markdown: Markdown = None,
    as_json: AsJson = False,
) -> None:
    """What changed from A to B: exactly in the lab, by statistics over repetitions elsewhere.

    Exit 0: no point got worse; 1: one did, by its verdict or by an expected or a headline metric, or is not in B.
    """
    from testctl.compare import check_alike, open_run, print_changes, uri_of, verdicts_of, write_verdicts

    if source:
        if second or more_a or more_b:
            raise PlanError("--source: want one PLAN, and no runs")
        first, second = _run_both(first, source, sets, Options(results or Path("results"), jobs=jobs or 1))
    elif given := [name for name, value in (("--set", sets), ("--jobs", jobs), ("--results", results)) if value]:
        raise PlanError(f"{', '.join(given)}: want --source twice, which runs a plan; got runs that were made already")
    elif second is None:
        raise PlanError("want two runs A and B, or a PLAN with --source twice")
    a, b = ([open_run(path) for path in paths] for paths in ([first, *(more_a or [])], [second, *(more_b or [])]))
    for run in (*a[1:], *b):
        check_alike(a[0], run, across_plans)
    comparison = _compared(a, b, metric or [], least / 100, seed)
    verdicts = verdicts_of(comparison, uri_of(second))
    write_verdicts(verdicts, {"junit": junit, "sarif": sarif, "markdown": markdown})
    if as_json:
        print(json.dumps(comparison.to_json(), indent=1))
    else:
        print_changes(comparison, Console(), everything)
    sys.exit(1 if comparison.worse or (strict and comparison.differs) else 0)


def _run_both(file: Path, sources: Sequence[str], sets: list[str] | None, options: Options) -> tuple[Path, Path]:
    """Run a plan on the kernels of two trees, or revisions; the directories of the runs.

    Both kernels are built before anything is run.  Raises PlanError, TestbedError.
    """
    from testctl.execution.pool import LocalPool

    if len(sources) != 2:
        raise PlanError(f"--source: want it twice, for the two kernels to compare; got {len(sources)}")
    kernels = [built(source) for source in sources]
    if kernels[0] == kernels[1]:
        raise PlanError(f"--source: want two kernels; {sources[0]} and {sources[1]} are the same")
    plan = load(file, "lab", sets, kernels[0].name, MAX_POINTS)
    with interruptible(""):
        first, second = (made_run(plan, options, LocalPool(options.jobs), kernel) for kernel in kernels)
    return first.path, second.path


def _compared(
    a: list[Run], b: list[Run], metrics: list[str], least: float, seed: int | None
) -> Comparison | Statistical:
    from testctl.compare import compare_runs, deterministic, judge_runs
    from testctl.metrics import metric_names

    unknown = [name for name in metrics if name not in metric_names()]
    if unknown:
        raise PlanError(f"--metric: want a metric's name, see testctl metrics; got {', '.join(unknown)}")
    if not deterministic(a[0]):
        return judge_runs(a, b, metrics, least, 1 if seed is None else seed)
    if metrics or seed is not None or len(a) + len(b) > 2:
        raise PlanError(
            f"{a[0].path}: a run in the lab is compared exactly, without --metric, --seed, --more-a and --more-b"
        )
    return compare_runs(a[0], b[0], least)
