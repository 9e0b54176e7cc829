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

from testctl.cli import complete
from testctl.cli.interrupt import interruptible
from testctl.cli.options import AsJson
from testctl.cli.runs import MaxPoints, Sets, Without, load, seconds
from testctl.cli.source import BuildProgress
from testctl.lab.tree_kernel import SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from testctl.mutate.draw import Mutant
    from testctl.mutate.operators import Site
    from testctl.plan import Plan

FILES = ",".join(f"net/ipv4/tcp_{name}.c" for name in ("input", "output", "timer", "recovery", "cong"))
Ranges = dict[str, list[tuple[int, int]]]


def mutate(
    files: Annotated[list[Path], typer.Argument(metavar="PLAN…", help="plans", autocompletion=complete.plans)],
    source: Annotated[
        Path | None, typer.Option("--source", metavar="DIR", help="a kernel tree, in place of --kernel")
    ] = None,
    kernel: Annotated[str, typer.Option("--kernel", metavar="NAME", help="a version of the kernel")] = "6.12",
    names: Annotated[str, typer.Option("--files", metavar="FILE,…", help="files of the tree to change")] = FILES,
    lines: Annotated[
        list[str] | None, typer.Option("--lines", metavar="FILE:A-B", help="only these lines, in place of --files")
    ] = None,
    mutants: Annotated[int, typer.Option("--mutants", metavar="N", min=1, max=8000, help="how many to draw")] = 200,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="which are drawn")] = 1,
    points: Annotated[int, typer.Option("--points", metavar="N", min=1, help="points that one is tried at")] = 12,
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="begin no mutant later than that, such as 30m")
    ] = "1h",
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

    Exit 0: every mutant was tried, or the time is over; 2: bad input; 3: the lab failed.
    """
    from testctl.mutate.build import build, read, tree
    from testctl.mutate.campaign import Bench, begin
    from testctl.mutate.detect import Campaign
    from testctl.mutate.draw import draw
    from testctl.mutate.report import print_report, to_json
    from testctl.results.atomic import naming_path, write_text
    from testctl.testbeds.lab import LabTestbed

    until = time.monotonic() + seconds("--budget", budget)
    ranges = _ranges(lines or [])
    named = SOURCE if source else kernel
    plans = [load(file, "lab", sets, named, max_points, without) for file in files]
    origin = tree(kernel, source)
    texts = read(origin, list(ranges or dict.fromkeys(name for name in names.split(",") if name)))
    drawn = draw(_sites(texts, ranges), mutants, seed)
    directory = out or Path("results") / "mutate" / f"{'-'.join(plan.name for plan in plans)[:60]}-{seed}"
    begin(directory, _head(plans, origin.fingerprint(), drawn, points, seed), resume)
    with interruptible("what was tried is kept, go on with --resume"):
        with BuildProgress() as progress:
            built, absent = build(origin, texts, drawn, progress, jobs)
        every = [point for plan in plans for point in plan.points]
        testbed = LabTestbed.for_points(every, commands=True, kernels={named: built})
        bench = Bench(Campaign(testbed, plans), drawn, absent, directory, jobs, points, until, _say)
        bench.run()
    of_plans = [plan.name for plan in plans]
    document = json.dumps(to_json(drawn, absent, bench.records, of_plans), indent=1)
    with naming_path(report := directory / "report.json", "every mutant is kept: --resume writes it again"):
        write_text(report, document)
    if as_json:
        print(document)
    else:
        print_report(drawn, absent, bench.records, of_plans, Console())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _ranges(lines: Sequence[str]) -> Ranges:
    """The lines of each file of --lines.  Raises PlanError."""
    ranges: Ranges = {}
    for text in lines:
        match = re.fullmatch(r"(.+):(\d+)-(\d+)", text)
        if match is None or not 0 < int(match[2]) <= int(match[3]):
            raise PlanError(f"--lines: want FILE:FIRST-LAST, such as net/ipv4/tcp_input.c:1200-1400; got {text!r}")
        ranges.setdefault(match[1], []).append((int(match[2]), int(match[3])))
    return ranges


def _sites(texts: Mapping[str, bytes], ranges: Ranges) -> list[Site]:
    """The sites of all files.  Raises PlanError for a file, or lines of it, without any."""
    from testctl.mutate.c_source import Source
    from testctl.mutate.operators import sites

    every: list[Site] = []
    for name, text in texts.items():
        there = sites(Source(name, text))
        if name in ranges:
            there = [site for site in there if any(first <= site.line <= last for first, last in ranges[name])]
        if not there:
            where = ", ".join(f"{first}-{last}" for first, last in ranges.get(name, []))
            raise PlanError(f"{name}{':' if where else ''}{where}: want code that can be changed; there is none")
        every += there
    return every


def _head(plans: Sequence[Plan], fingerprint: str, drawn: Sequence[Mutant], points: int, seed: int) -> dict[str, Any]:
    """What determines a run, by the words of an error about it."""
    from testctl.execution.assess import analysis_keys
    from testctl.mutate.report import shown
    from testctl.testbeds.lab import code_hash

    def key(*parts: object) -> str:
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]

    return {
        "plan": ", ".join(f"{plan.name} {key(plan.text, *(point.id for point in plan.points))}" for plan in plans),
        "seed": seed,
        "source": fingerprint,
        "choice of mutants": f"{len(drawn)} {key(*map(shown, drawn))}",
        "number of points": points,
        "code": key(code_hash(), analysis_keys()),
    }
