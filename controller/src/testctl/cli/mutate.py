# SPDX-License-Identifier: Apache-2.0
"""testctl mutate."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from testctl_agent.spec.errors import PlanError

from testctl.cli import complete, panels
from testctl.cli.interrupt import INTERRUPTED, interruptible
from testctl.cli.options import AsJson
from testctl.cli.runs import MaxPoints, Sets, Without, load, seconds
from testctl.cli.source import BuildProgress

if TYPE_CHECKING:
    from testctl.mutate.draw import Mutant
    from testctl.mutate.operators import Site
    from testctl.plan import Plan

FILES = ",".join(f"net/ipv4/tcp_{name}.c" for name in ("input", "output", "timer", "recovery", "cong"))
_LINES = re.compile(r"(.+):(\d+)-(\d+)")


def mutate(
    files: Annotated[list[Path], typer.Argument(metavar="PLAN…", help="plans", autocompletion=complete.plans)],
    source: Annotated[
        Path | None, typer.Option("--source", metavar="DIR", help="a kernel tree; default: the source of --kernel")
    ] = None,
    kernel: Annotated[str, typer.Option("--kernel", metavar="NAME", help="a version of the kernel")] = "6.12",
    names: Annotated[str, typer.Option("--files", metavar="FILE,…", help="files of the tree to change")] = FILES,
    lines: Annotated[
        list[str] | None, typer.Option("--lines", metavar="FILE:A-B", help="only these lines, in place of --files")
    ] = None,
    mutants: Annotated[int, typer.Option("--mutants", metavar="N", min=1, max=8000, help="how many are drawn")] = 200,
    points: Annotated[int, typer.Option("--points", min=1, help="points that a mutant is tried at, at most")] = 12,
    budget: Annotated[str, typer.Option("--budget", metavar="TIME", help="begin no mutant after that, such as 1h")] = "1h",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="which mutants are drawn")] = 1,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, help="mutants at once")] = os.cpu_count() or 1,
    sets: Sets = None,
    without: Without = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="default: results/mutate/<plans>-<seed>")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with a run that was interrupted")] = False,
    max_points: MaxPoints = 1000,
    as_json: AsJson = False,
) -> None:
    """Put seeded faults into the kernel's C, and count those that the plans' expectations and the rules of TCP detect.

    Exit 0: the run is complete, or its time is over; 2: bad input; 3: the lab failed.
    """
    from testctl.mutate.build import build, read, tree
    from testctl.mutate.campaign import Bench, begin
    from testctl.mutate.draw import draw
    from testctl.mutate.report import print_report, to_json
    from testctl.mutate.trial import Campaign
    from testctl.testbeds.lab import LabTestbed

    clock, budget_s = time.monotonic(), seconds("--budget", budget)
    plans = [load(file, "lab", sets, kernel, max_points, without) for file in files]
    tree_source = tree(kernel, source)
    ranges = _ranges(lines or [])
    texts = read(tree_source, list(ranges) or [name for name in names.split(",") if name])
    drawn = draw(_sites(texts, ranges), mutants, seed)
    directory = out or Path("results") / "mutate" / f"{'-'.join(plan.name for plan in plans)[:60]}-{seed}"
    begin(directory, _head(plans, tree_source.fingerprint(), drawn, points, seed), resume)
    with interruptible():
        try:
            with BuildProgress() as progress:
                built, wrong = build(tree_source, texts, drawn, progress, jobs)
            dropped = [mutant.number for mutant in wrong]
            every = [point for plan in plans for point in plan.points]
            testbed = LabTestbed.for_points(every, commands=True, kernel=built)
            until = clock + budget_s
            bench = Bench(Campaign(testbed, plans), drawn, dropped, directory, jobs, points, until, _say)
            bench.run()
        except KeyboardInterrupt:
            print("interrupted; what was tried is kept, go on with --resume", file=sys.stderr)
            sys.exit(INTERRUPTED)
    document = to_json(drawn, dropped, bench.records)
    (directory / "report.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    if as_json:
        print(json.dumps(document, indent=1))
    else:
        print_report(drawn, dropped, bench.records, Console())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _ranges(lines: list[str]) -> dict[str, list[tuple[int, int]]]:
    """The lines of each file of --lines."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for text in lines:
        match = _LINES.fullmatch(text)
        if match is None or not 0 < int(match[2]) <= int(match[3]):
            raise PlanError(f"--lines: want FILE:FIRST-LAST, such as net/ipv4/tcp_input.c:1200-1400; got {text!r}")
        ranges.setdefault(match[1], []).append((int(match[2]), int(match[3])))
    return ranges


def _sites(texts: dict[str, bytes], ranges: dict[str, list[tuple[int, int]]]) -> list[Site]:
    from testctl.mutate.c_source import Source
    from testctl.mutate.operators import sites

    every = []
    for name, text in texts.items():
        wanted = ranges.get(name, [(1, text.count(b"\n") + 1)])
        there = [site for site in sites(Source(name, text)) if any(a <= site.line <= b for a, b in wanted)]
        if not there:
            what = ", ".join(f"lines {a}-{b}" for a, b in wanted) if ranges else "the file"
            raise PlanError(f"{name}: want code that can be changed; {what} has none")
        every += there
    return every


def _head(plans: list[Plan], fingerprint: str, drawn: list[Mutant], points: int, seed: int) -> dict[str, Any]:
    """What determines a run, by the words of an error about it."""
    from testctl.execution.assess import analysis_keys
    from testctl.mutate.report import shown
    from testctl.testbeds.lab import code_hash

    def key(*parts: object) -> str:
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]

    return {
        "plan": [f"{plan.name} {key(plan.text, *(point.id for point in plan.points))}" for plan in plans],
        "seed": seed,
        "source": fingerprint,
        "choice of mutants": f"{len(drawn)} {key(*map(shown, drawn))}",
        "number of points": points,
        "code": key(code_hash(), analysis_keys()),
    }


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel=panels.COMPARE)(mutate)
