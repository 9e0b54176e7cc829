# SPDX-License-Identifier: Apache-2.0
"""testctl corpus."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from testctl_agent.spec.errors import PlanError

from testctl.cli import complete
from testctl.cli.interrupt import interruptible
from testctl.cli.options import AsJson
from testctl.cli.runs import load
from testctl.cli.source import BuildProgress
from testctl.core.words import counted
from testctl.system import checkout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testctl.mutate.corpus import Bug
    from testctl.mutate.detect import Campaign, Record

BUGS = "plans/corpus"
MAX_POINTS = 10_000


def corpus(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help="bugs; default: all")] = None,
    directory: Annotated[
        Path | None, typer.Option("--directory", metavar="DIR", help=f"where they are (default: {BUGS})")
    ] = None,
    kernel: Annotated[str, typer.Option("--kernel", metavar="NAME", help="a version of the kernel")] = "6.12",
    found_by: Annotated[
        list[Path] | None,
        typer.Option(
            "--found-by",
            metavar="PLAN",
            help="whether this plan, or one of several, detects them, without theirs",
            autocompletion=complete.plans,
        ),
    ] = None,
    points: Annotated[
        int, typer.Option("--points", metavar="N", min=1, help="with --found-by: points that one is tried at")
    ] = MAX_POINTS,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, help="points at once")] = os.cpu_count() or 1,
    as_json: AsJson = False,
) -> None:
    """Bring known faults of TCP back, one by one: each one's plan has to fail with it and to pass without.

    Exit 0: each does, or another plan was asked; 1: one does not; 2: bad input; 3: the lab failed.
    """
    from testctl.mutate.build import build, read, tree
    from testctl.mutate.corpus import load_bug, mutants_of
    from testctl.mutate.detect import Campaign
    from testctl.system.temporary import temporary
    from testctl.testbeds.lab import LabTestbed

    bugs = [load_bug(file, kernel) for file in _files(directory or checkout.root() / BUGS, names or [])]
    others = [load(file, "lab", None, kernel, MAX_POINTS) for file in found_by or ()]
    origin = tree(kernel, None)
    texts = read(origin, list(dict.fromkeys(edit.file for bug in bugs for edit in bug.edits)))
    mutants = mutants_of(bugs, texts)
    plans = others or [bug.plan for bug in bugs]
    with interruptible(""), temporary("testctl-corpus-") as work:
        with BuildProgress() as progress:
            built, absent = build(origin, texts, mutants, progress, jobs)
        if absent:
            lost = ", ".join(bugs[number - 1].name for number in sorted(set(absent)))
            raise PlanError(f"want edits that compile; those of {lost} do not, or the kernel leaves their code out")
        every = [point for plan in plans for point in plan.points]
        testbed = LabTestbed.for_points(every, commands=True, kernels={kernel: built})
        campaign = Campaign(testbed, plans)
        records = _tried(campaign, bugs, work, jobs, points if others else 0)
    entries = [_entry(bug, record) for bug, record in zip(bugs, records, strict=True)]
    if not others:
        for place, entry in enumerate(entries):
            entry["without"] = _without(campaign, place)
    if as_json:
        print(json.dumps({"kernel": kernel, "found_by": [plan.name for plan in others], "bugs": entries}, indent=1))
    else:
        _print(entries, Console())
    sys.exit(1 if not others and any(entry["without"] or not entry["detected"] for entry in entries) else 0)


def _files(directory: Path, names: Sequence[str]) -> list[Path]:
    there = {file.stem: file for file in sorted(directory.glob("*.yaml"))}
    if unknown := [name for name in names if name not in there]:
        raise PlanError(f"corpus: want bugs of {directory}: {', '.join(there) or 'none is there'}; got {unknown[0]}")
    if not there:
        raise PlanError(f"corpus: want files of bugs in {directory}; got none")
    return [there[name] for name in names] if names else list(there.values())


def _tried(campaign: Campaign, bugs: Sequence[Bug], work: Path, jobs: int, points: int) -> list[Record]:
    """What became of each bug at `points` points of all plans, or with 0 of its own plan.  Raises TestbedError."""
    from testctl.mutate.campaign import Bench
    from testctl.mutate.draw import Mutant
    from testctl.mutate.operators import Site

    sites = [Site(bug.edits[0].file, bug.name, 0, bug.name, 0, 0, "", "") for bug in bugs]
    mutants = [Mutant(number, site) for number, site in enumerate(sites, 1)]
    bench = Bench(
        campaign, mutants, (), work, jobs, points or MAX_POINTS, float("inf"),
        lambda line: print(line, file=sys.stderr, flush=True), own=not points,
    )  # fmt: skip
    bench.run()
    return [bench.records[mutant.number] for mutant in mutants]


def _without(campaign: Campaign, place: int) -> list[str]:
    """What a plan detects without its bug: it has to be nothing."""
    from testctl.mutate.detect import detections

    plan, results = campaign.plans[place], campaign.unchanged(place)
    return [text for point in plan.points for text in detections(plan, point, results).values()]


def _entry(bug: Bug, record: Record) -> dict[str, Any]:
    return {
        "name": bug.name,
        "bug": bug.bug,
        "source": bug.source,
        "since": bug.since,
        "fixed": bug.fixed,
        "verdict": record.verdict,
        "detected": {kind: sentence for kind, (_, _, sentence) in record.detected.items()},
        "different": [metric for _, _, metric in record.differ],
        "points": len(record.tried),
    }


def _print(entries: Sequence[dict[str, Any]], console: Console) -> None:
    table = Table("bug", "fixed in", "detected by", box=None, header_style="bold", pad_edge=False)
    for entry in entries:
        how = next(iter(entry["detected"].values()), entry["verdict"])
        if wrong := entry.get("without"):
            how = f"its plan does not pass without it: {wrong[0]}"
        table.add_row(entry["name"], entry["fixed"], Text(how))
    console.print(table)
    detected = sum(bool(entry["detected"]) for entry in entries)
    console.print(f"{detected} of {counted(len(entries), 'bug')} detected", highlight=False)
