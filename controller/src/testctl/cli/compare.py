# SPDX-License-Identifier: Apache-2.0
"""testctl compare."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from testctl.cli.shows import AsJson


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="the run to compare with")],
    second: Annotated[Path, typer.Argument(metavar="B", help="the run that may have changed")],
    least: Annotated[
        float, typer.Option("--least", min=0.0, metavar="PERCENT", help="pass over metrics that moved by no more")
    ] = 0.0,
    across_plans: Annotated[
        bool, typer.Option("--across-plans", help="compare the points that runs of two plans share")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="exit 1 when anything differs, better or not")] = False,
    everything: Annotated[bool, typer.Option("--all", help="print every point and metric that differs")] = False,
    as_json: AsJson = False,
) -> None:
    """What changed from A to B: exactly in the lab, by statistics over repetitions elsewhere.

    Exit 0: nothing got worse; 1: a verdict or metric did, or a point of A is not in B.
    """
    from testctl.compare import check_alike, compare_runs, open_run, print_comparison

    a, b = open_run(first), open_run(second)
    check_alike(a, b, across_plans)
    found = compare_runs(a, b, least / 100)
    if as_json:
        print(json.dumps(found.to_json(), indent=1))
    else:
        print_comparison(found, Console(), everything)
    sys.exit(1 if found.worse or (strict and found.differs) else 0)


def add_to(app: typer.Typer) -> None:
    app.command()(compare)
