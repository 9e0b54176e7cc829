# SPDX-License-Identifier: Apache-2.0
"""testctl certify."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from testctl_agent.spec.errors import PlanError

from testctl.cli.interrupt import INTERRUPTED, interruptible
from testctl.cli.made_run import made_run
from testctl.cli.options import AsJson, Results
from testctl.cli.runs import KernelName, own_kernel, report_jobs
from testctl.cli.source import HELP, METAVAR
from testctl.execution.options import Options
from testctl.testbeds.choose import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testctl.certify.card import Card, Cell
    from testctl.certify.criteria import Criterion
    from testctl.execution.pool import LocalPool
    from testctl.lab.kernel import Kernel

_BED = "lab"
_MOST_RUNS = 60
"""Of a point, when it is shrunk."""


def certify(
    cc: Annotated[str, typer.Argument(metavar="CC", help="a congestion control of the kernel or of lab/cc")],
    kernel: KernelName = None,
    source: Annotated[str | None, typer.Option("--source", metavar=METAVAR, help=HELP)] = None,
    beside: Annotated[
        str, typer.Option("--beside", metavar="CC,CC…", help="whose verdicts stand beside it; none: nobody's")
    ] = "cubic,reno",
    quick: Annotated[bool, typer.Option("--quick", help="few points: each value of a criterion's plan once")] = False,
    full: Annotated[bool, typer.Option("--full", help="every point; without either each pair of values")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--plan", metavar="PLAN", help="only this criterion: a name of plans/certify, or a file; repeatable"
        ),
    ] = None,
    shrink: Annotated[
        bool, typer.Option("--shrink", help="search the smallest set of tuples that still fails, of each worst point")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", metavar="N", min=1, max=256, help="points at once (default: one for each processor)"
        ),
    ] = None,
    results: Results = Path("results"),
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="for the scorecard (default: RESULTS/<time>-certify-CC)")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A scorecard of a congestion control: what RFC 9743 asks of a new one, criterion by criterion.

    Exit 0: it meets the bounds of every criterion that MUST be evaluated; 1: not of every one; 2: bad input; 3: one
    can't be judged.
    """
    from testctl.certify import criteria, page
    from testctl.certify.card import Card
    from testctl.execution.pool import LocalPool
    from testctl.results import run_name
    from testctl.system.worker_pool import workers

    if quick and full:
        raise PlanError("--quick, --full: want one of the two")
    others = [name.strip() for name in beside.split(",")] if beside != "none" else []
    names = list(dict.fromkeys([cc, *others]))
    for word in names:
        if not re.fullmatch("[a-z][a-z0-9_]{0,14}", word):
            raise PlanError(f"want the name of a congestion control, such as cubic; got {word!r}")
    started, clock = datetime.now(UTC), time.monotonic()
    numbered = (results / run_name(f"certify-{cc}", started, number) for number in count(1))
    place = out or next(place for place in numbered if not place.exists())
    page.check_out(place)
    tree = own_kernel(source, _BED, kernel) if source is not None else None
    strength = 1 if quick else criteria.EVERY if full else 2
    files, name = criteria.chosen(only or ()), tree.name if tree else kernel
    criteria_of = {each: criteria.load(files, each, name, strength) for each in names}
    testbed = find(_BED)
    for criterion in [] if tree else [c for of in criteria_of.values() for c in of]:
        testbed.check(criterion.plan)
    at_once = jobs or len(os.sched_getaffinity(0))
    command = shlex.join(["testctl", *sys.argv[1:]])
    cells: dict[str, list[Cell]] = {}
    with interruptible():
        try:
            with workers(at_once) as kept:
                pool = LocalPool(at_once, kept)
                for each, of in criteria_of.items():
                    cells[each] = _cells(each, of, tree, results, pool)
                    ran = {full for cell in cells[each] for full in cell.run.versions.get("kernels", {}).values()}
                    took_s = time.monotonic() - clock
                    card = Card(cells, ", ".join(sorted(ran)), started.isoformat(timespec="seconds"), took_s, command)
                    written = page.write(card, place)
            if shrink:
                cells[cc] = [_shrunk(cell, results, at_once) for cell in cells[cc]]
                written = page.write(card, place)
        except KeyboardInterrupt:
            print("interrupted; finished points are kept, and taken over by the same command", file=sys.stderr)
            if cells:
                print(f"scorecard so far, of {', '.join(cells)}: {place}", file=sys.stderr)
            sys.exit(INTERRUPTED)
    if as_json:
        print(json.dumps(card.to_json(), indent=1))
    else:
        _print(card, Console())
        print(f"scorecard  {written}")
    sys.exit(card.exit_code)


def _cells(cc: str, of: Sequence[Criterion], tree: Kernel | None, results: Path, pool: LocalPool) -> list[Cell]:
    """Run the criteria for a congestion control: a cell for each, and one for the rules of TCP."""
    from testctl.certify.card import cell_of, rules_cell

    done: list[Cell] = []
    options = Options(results, None, pool.jobs, resume=True, report_jobs=report_jobs(_BED))
    for number, criterion in enumerate(of, start=1):
        print(f"{cc}, {number} of {len(of)}: {criterion.name} ({criterion.source})", file=sys.stderr)
        run = made_run(criterion.plan, options, pool, tree)
        done.append(cell_of(criterion, run))
        print(f"  {done[-1].verdict}: {run.path}", file=sys.stderr)
    return [*done, rules_cell(done)]


def _shrunk(cell: Cell, results: Path, jobs: int) -> Cell:
    """The cell with the smallest set of tuples with which its worst point fails; as it is where none is searched."""
    from testctl.shrink.case import open_case
    from testctl.shrink.command import run_search

    if cell.verdict != "fail" or not cell.by:
        return cell
    print(f"shrinks {cell.criterion.name}: {cell.by}", file=sys.stderr)
    try:
        case = open_case(cell.run, cell.point, cell.by)
        directory = results / "shrink" / f"{case.run.name}-{case.point.id}"
        ended = run_search(case, directory, jobs=jobs, probes=0, most=_MOST_RUNS, told_of=lambda trial: None)
    except PlanError as error:
        print(f"  {error}", file=sys.stderr)
        return cell
    if ended.interrupted:
        raise KeyboardInterrupt
    smallest = " ".join(f"{entity}.{param}={value}" for entity, param, value in ended.found.smallest)
    if not any((entity, param) == ("tested", "cc") for entity, param, _ in ended.found.smallest):
        print(f"  {smallest} fails with any congestion control, so it is left out", file=sys.stderr)
        return cell
    print(f"  {smallest}{f' ({ended.why})' if ended.why else ''}", file=sys.stderr)
    return replace(cell, shrunk=(smallest, ended.plan))


def _print(card: Card, console: Console) -> None:
    from testctl.certify.card import FEW
    from testctl.charts.style import VERDICT_LOOKS

    if len(card.cells) > FEW:
        table = Table("congestion control", "MUST", "other", "what it does not meet", box=None, header_style="bold")
        for name, cells in card.cells.items():
            missed = [cell.criterion for cell in cells if cell.verdict != "pass"]
            must = sum(criterion.level == "MUST" for criterion in missed)
            table.add_row(name, str(must), str(len(missed) - must), ", ".join(criterion.name for criterion in missed))
        console.print(table)
        console.print(f"digest  {card.digest}", highlight=False)
        return
    table = Table("criterion", "of", "asks", *card.cells, box=None, header_style="bold", pad_edge=False)
    for cells in zip(*card.cells.values(), strict=True):
        of = cells[0].criterion
        table.add_row(
            Text(of.name), of.source, of.level,
            *(f"{VERDICT_LOOKS[cell.verdict].sign} {cell.verdict}" for cell in cells),
        )  # fmt: skip
    console.print(table)
    for cell in card.own:
        if cell.verdict != "pass":
            for line in cell.why:
                sign, criterion = VERDICT_LOOKS[cell.verdict].sign, cell.criterion
                console.print(Text(f"{sign} {criterion.name} ({criterion.level}): {line}"))
            if cell.shrunk:
                console.print(Text(f"  smallest: {cell.shrunk[0]}"))
            console.print(Text(f"  testctl show {cell.run.path} {cell.point[:8]}"), soft_wrap=True)
    console.print(f"not met of what MUST be evaluated: {card.musts}", highlight=False)
    console.print(f"digest  {card.digest}", highlight=False)
