# SPDX-License-Identifier: Apache-2.0
"""testctl releases."""

from __future__ import annotations

import json
import sys
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text
from testctl_agent.spec.errors import PlanError

from testctl.cli import complete
from testctl.cli.corpus import BUGS
from testctl.cli.interrupt import interruptible
from testctl.cli.made_run import made_run
from testctl.cli.options import AsJson, Jobs, Results
from testctl.cli.runs import load, report_jobs
from testctl.core.words import counted
from testctl.execution.options import Options
from testctl.results.layout import same_names
from testctl.system import checkout
from testctl.testbeds.choose import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testctl.releases.entries import Entry
    from testctl.releases.groups import Compared, Group
    from testctl.results import Run

ENTRIES = "plans/releases.yaml"
MAX_POINTS = 10_000
_BED = "lab"


def releases(
    files: Annotated[list[Path], typer.Argument(metavar="PLAN…", help="plans", autocompletion=complete.plans)],
    kernels: Annotated[
        str, typer.Option("--kernels", metavar="NAME,NAME…", help="from the oldest to the newest, such as 6.1,6.12")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="where the pages go")],
    entries: Annotated[
        Path | None,
        typer.Option("--entries", metavar="FILE", help=f"what is known of the groups (default: {ENTRIES})"),
    ] = None,
    results: Results = Path("results"),
    jobs: Jobs = 1,
    as_json: AsJson = False,
) -> None:
    """What changed in TCP from kernel to kernel: run plans on each, and group the points that differ by cause.

    Exit 0: no group is a regression or unknown; 1: one is; 2: bad input; 3: the lab failed.
    """
    from testctl.execution.pool import LocalPool
    from testctl.releases.entries import load_entries
    from testctl.releases.groups import compared, grouped
    from testctl.releases.site import as_json as to_json
    from testctl.releases.site import check_out, write_site
    from testctl.system.worker_pool import workers

    names = _names(kernels)
    check_out(out)
    if wrong := same_names(files):
        raise PlanError("\n".join(wrong))
    known = load_entries(entries or checkout.root() / ENTRIES, _bugs())
    plans = {name: [load(file, _BED, None, name, MAX_POINTS) for file in files] for name in names}
    for plan in chain.from_iterable(plans.values()):
        find(_BED).check(plan)
    with interruptible("finished points are kept, and taken over by the same command"), workers(jobs) as kept:
        pool = LocalPool(jobs, kept)
        options = Options(results, None, jobs, resume=True, report_jobs=report_jobs(_BED))
        runs = {name: [made_run(plan, options, pool) for plan in of] for name, of in plans.items()}
    pairs = [
        compared(plan.name, pair, (runs[pair[0]][place], runs[pair[1]][place]), known)
        for pair in pairwise(names)
        for place, plan in enumerate(plans[pair[0]])
    ]
    groups = grouped(pairs)
    met = {id(point.entry) for group in groups for point in group.points}
    stale = [entry for entry in known if entry.between in [*pairwise(names)] and id(entry) not in met]
    page = write_site(pairs, groups, stale, out)
    if as_json:
        print(json.dumps(to_json(pairs, groups, stale), indent=1))
    else:
        _print(pairs, groups, stale, Console())
        print(f"pages  {page}")
    sys.exit(_code([run for of in runs.values() for run in of], groups))


def _names(text: str) -> list[str]:
    """Raises PlanError unless they are two or more kernels that are built."""
    from testctl.lab.built import names as built_names

    names = [name.strip() for name in text.split(",")]
    if len(names) < 2:
        raise PlanError(f"--kernels: want two or more, with commas between them; got {text!r}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise PlanError(f"--kernels: want each kernel once; got {twice} twice")
    there = built_names()
    if unknown := [name for name in names if name not in there]:
        raise PlanError(
            f"--kernels: want built kernels: {', '.join(there) or 'there is none'}; got {unknown[0]!r};"
            f" build it with: testctl lab build {unknown[0]}"
        )
    return names


def _bugs() -> list[str]:
    return [file.stem for file in (checkout.root() / BUGS).glob("*.yaml")]


def _code(runs: Sequence[Run], groups: Sequence[Group]) -> int:
    verdicts = {point.verdict for run in runs for point in run.points}
    if verdicts & {"broken", "invalid"}:
        return 3
    return 1 if {group.label for group in groups} & {"regression", "unknown"} else 0


def _print(pairs: Sequence[Compared], groups: Sequence[Group], stale: Sequence[Entry], console: Console) -> None:
    right = [Column(name, justify="right") for name in ("points", "the same", "different")]
    table = Table("kernels", "plan", *right, box=None, header_style="bold", pad_edge=False)
    for pair in pairs:
        same, differ = pair.comparison.same, len(pair.points)
        points = same + differ + len(pair.comparison.only_a) + len(pair.comparison.only_b)
        table.add_row(" → ".join(pair.between), Text(pair.plan), str(points), str(same), str(differ))
    console.print(table)
    table = Table("kernels", "points", "label", "group", box=None, header_style="bold", pad_edge=False)
    for group in groups:
        table.add_row(" → ".join(group.between), str(len(group.points)), group.label, Text(group.name))
    if groups:
        console.print()
        console.print(table)
    for entry in stale:
        console.print(f"{entry.place}: {entry.name}: no point that differs is of this entry", markup=False)
    unknown, worse = (sum(group.label == label for group in groups) for label in ("unknown", "regression"))
    console.print(
        f"\n{counted(len(groups), 'group')}: {counted(worse, 'regression')}, {unknown} unknown", highlight=False
    )
