# SPDX-License-Identifier: Apache-2.0
"""testctl show, series, report."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from testctl_agent.spec.errors import PlanError
from typer.core import TyperOption

from testctl.cli import complete, verdict_files
from testctl.cli.help import Command
from testctl.cli.options import AsJson
from testctl.cli.verdict_files import Junit, Markdown, Sarif

RunDir = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="a run's directory, such as results/latest", autocompletion=complete.runs),
]
PointId = Annotated[
    str,
    typer.Argument(metavar="POINT", help="the point's id, or how it starts", autocompletion=complete.points),
]
DAMAGED = 3
"""The exit code where a point of a run can't be read."""


def show(
    run: RunDir,
    point: Annotated[
        str | None,
        typer.Argument(metavar="[POINT]", help="one point of it: all of its metrics", autocompletion=complete.points),
    ] = None,
    junit: Junit = None,
    sarif: Sarif = None,
    markdown: Markdown = None,
    plot: Annotated[bool, typer.Option("--plot", help="draw metrics over the swept parameters instead")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="print CSV: a line a point, numbers in base units, as its heading says")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print what a run found, or one of its points; exit code 3 where files of a point can't be read."""
    from testctl.report import print_plots, print_point, print_summary
    from testctl.report.plain_points import write_csv
    from testctl.report.sweep_choice import sweeps_of_run
    from testctl.results import load_run

    damage: list[str] = []
    loaded = load_run(run, damage)
    readable = point is not None and any(intact.id.startswith(point) for intact in loaded.points)
    if damage and (point is not None or not loaded.points) and not readable:
        raise PlanError("\n".join(damage))
    if point is not None:
        of_run = {"--junit": junit, "--sarif": sarif, "--markdown": markdown, "--plot": plot, "--csv": as_csv,
                  "--json": as_json}  # fmt: skip
        if given := [name for name, value in of_run.items() if value]:
            raise PlanError(f"{given[0]}: want a run alone; got POINT {point} too")
        print_point(loaded, loaded.point(point), Console())
        return
    forms = [name for name, value in (("--json", as_json), ("--csv", as_csv), ("--plot", plot)) if value]
    if len(forms) > 1:
        raise PlanError(f"want one of --json, --csv and --plot; got {' and '.join(forms)}")
    verdict_files.write(loaded, None, {"junit": junit, "sarif": sarif, "markdown": markdown})
    if as_json:
        print(json.dumps(loaded.summary, indent=1))
    elif as_csv:
        write_csv(loaded, sys.stdout)
    elif plot:
        print_plots(sweeps_of_run(loaded), Console())
    else:
        print_summary(loaded, Console(), every=True)
    for text in damage:
        print(f"warning: a point is left out: {text}", file=sys.stderr)
    if damage:
        sys.exit(DAMAGED)


def series(
    run: RunDir,
    point: PointId,
    flow: Annotated[
        str | None,
        typer.Option("--flow", help="the flow's name; not needed of one alone", autocompletion=complete.flows),
    ] = None,
    metric: Annotated[
        str,
        typer.Option("--metric", help="a curve", autocompletion=complete.curves),
    ] = "throughput",
    bin_width: Annotated[str, typer.Option("--bin", help="width of a bin, such as 1ms")] = "10ms",
    as_csv: Annotated[bool, typer.Option("--csv", help="print CSV")] = False,
) -> None:
    """Print a metric of one flow over time."""
    from testctl.api import load

    table = load(run).point(point).series(flow, metric, bin_width, to_arrow=True)
    if not table.num_rows:
        raise PlanError(
            f"--metric {metric}: point {point} has nothing of it: its instrument was off, or nothing happened for "
            "as long as a row takes"
        )
    if as_csv:
        writer = csv.writer(sys.stdout)
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    else:
        rows = table.to_pylist()
        known = [name for name in table.column_names if any(row[name] != -1 for row in rows)]
        for row in rows:
            print("  ".join(f"{name} {_number(row[name])}" for name in known))


def _number(value: object) -> object:
    """-1: not known."""
    if value == -1:
        return "?"
    return f"{value:.{6 if abs(value) < 1e6 else 12}g}" if isinstance(value, float) else value


def report(
    run: RunDir,
    force: Annotated[bool, typer.Option("--force", help="write it again, as this version of testctl draws it")] = False,
) -> None:
    """Say where a run's report is; write it if the run has none, or with --force."""
    from testctl.report import write_report
    from testctl.results import load_run
    from testctl.results.layout import REPORT

    loaded = load_run(run)
    page = loaded.path / REPORT
    written = force or not page.exists()
    if written:
        write_report(loaded)
    print(page)
    if not written:
        print("it was there already; --force writes it again", file=sys.stderr)


class Series(Command):
    """Its help lists the curves of other distributions too, which are looked up for it alone."""

    def format_help(self, *arguments: Any) -> None:
        for option in self.params:
            if isinstance(option, TyperOption) and option.name == "metric":
                option.help = f"a curve: {', '.join(complete.all_curves())}"
        super().format_help(*arguments)
