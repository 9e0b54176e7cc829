# SPDX-License-Identifier: Apache-2.0
"""testctl plan, testctl run."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.cli import affected, complete, verdict_files
from testctl.cli.affected import of_affected, since
from testctl.cli.interrupt import interruptible
from testctl.cli.options import AsJson, Jobs, Results
from testctl.cli.source import HELP, METAVAR, built, described
from testctl.cli.verdict_files import Github, Junit, Markdown, Sarif
from testctl.core.testbed_kind import kind_of
from testctl.execution.first_failure import FirstFailure
from testctl.execution.options import Options
from testctl.lab import memory
from testctl.lab.kernel import Kernel, remember
from testctl.lab.tree_kernel import SOURCE
from testctl.plan import Plan, load_plan
from testctl.plan.remarks import remarks
from testctl.system.memory import free_mb
from testctl.testbeds.choose import find
from testctl.testbeds.testbed import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from testctl.execution.pool import Pool
    from testctl.results import Run

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="the plan's file", autocompletion=complete.plans)]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="ENTITY.PARAM=VALUE",
        autocompletion=complete.settings,
        help="replace or add a tuple; commas part the values of a sweep, a value that has one wants quotes: "
        "--set 'switch.fate=\"drop data 1-4 of bulk, first\"'",
    ),
]
KernelName = Annotated[
    str | None,
    typer.Option("--kernel", metavar="NAME", help="run every point on this kernel", autocompletion=complete.kernels),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="ENTITY.PARAM",
        help="leave a tuple out; the report says so",
        autocompletion=complete.tuples,
    ),
]
MaxPoints = Annotated[int, typer.Option("--max-points", metavar="N", min=1, help="refuse a plan that expands to more")]
TestbedName = Annotated[
    str,
    typer.Option(
        "--testbed",
        metavar="lab|netns|INVENTORY",
        help="where the points run",
        autocompletion=complete.testbeds,
    ),
]
On = Annotated[
    str | None,
    typer.Option("--on", metavar="NAME", help="the kernel of --source for this host or group alone"),
]
AffectedMost = Annotated[int | None, typer.Option("--affected-most", metavar="N", min=1, help=affected.MOST)]
AffectedBy = Annotated[str | None, typer.Option("--affected-by", metavar=affected.METAVAR, help=affected.HELP)]
Wait = Annotated[
    str,
    typer.Option("--wait", metavar="TIME", help="wait so long, such as 2h, for the rack's machines, in turn"),
]


def load(
    file: Path,
    testbed: str,
    sets: list[str] | None,
    kernel: str | None,
    max_points: int,
    without: list[str] | None = None,
    on: str = "hosts",
) -> Plan:
    """The plan as the options have it; on: the entity that the kernel is of."""
    from testctl.metrics import metric_names
    from testctl.rules import rules

    find(testbed)
    twice = [text for text in sets or [] if kernel is not None and text.replace(" ", "").startswith(f"{on}.kernel=")]
    if twice:
        raise PlanError(f"the kernel of {on}: want it once; got {kernel} (--kernel or --source) and --set {twice[0]}")
    overrides = [*(sets or []), *([f"{on}.kernel='{kernel}'"] if kernel is not None else [])]
    return load_plan(
        file,
        metrics=metric_names(),
        rules=rules(),
        testbed=testbed,
        overrides=overrides,
        max_points=max_points,
        without=without or (),
    )


def plan(
    file: PlanFile,
    testbed: TestbedName = "lab",
    sets: Sets = None,
    kernel: KernelName = None,
    without: Without = None,
    max_points: MaxPoints = 10_000,
    as_json: AsJson = False,
) -> None:
    """Dry run: points, interaction coverage, time estimate, what would be set and where.  Touches nothing."""
    from testctl.cli.dry_run import print_dry_run

    chosen = load(file, testbed, sets, kernel, max_points, without)
    selected = find(testbed)
    selected.check(chosen)
    _warn(chosen)
    print_dry_run(chosen, as_json, selected.places(chosen))


def run(
    file: PlanFile,
    testbed: TestbedName = "lab",
    sets: Sets = None,
    kernel: KernelName = None,
    without: Without = None,
    jobs: Jobs = 1,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ADDRESS", help="run the points on a Dask scheduler's workers"),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="take a scheduler of another machine without TLS")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="the run's directory (default: results/<time>-<plan>)")
    ] = None,
    results: Results = Path("results"),
    resume: Annotated[bool, typer.Option("--resume", help="take finished points from earlier runs")] = False,
    captures: Annotated[bool, typer.Option("--captures", help="keep each host's packets as a pcap file too")] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", "-x", help="begin no further point after the first failure")
    ] = False,
    last_failed: Annotated[
        bool, typer.Option("--last-failed", help="only the points that failed in the newest run of this plan")
    ] = False,
    failed_in: Annotated[
        Path | None,
        typer.Option(
            "--failed-in", metavar="RUN", help="only the points that failed in this run", autocompletion=complete.runs
        ),
    ] = None,
    wall_limit: Annotated[
        float | None,
        typer.Option("--wall-limit", metavar="SECONDS", min=1, help="seconds of wall time a point may take"),
    ] = None,
    wait: Wait = "0s",
    source: Annotated[str | None, typer.Option("--source", metavar=METAVAR, help=HELP)] = None,
    on: On = None,
    affected_by: AffectedBy = None,
    affected_most: AffectedMost = None,
    max_points: MaxPoints = 10_000,
    junit: Junit = None,
    sarif: Sarif = None,
    markdown: Markdown = None,
    github: Github = None,
    as_json: AsJson = False,
) -> None:
    """Run every point of a plan, judge it, and write results and a report."""
    from testctl.execution.pool import LocalPool

    files = {"junit": junit, "sarif": sarif, "markdown": markdown}
    verdict_files.check(files)
    wait_s = seconds("--wait", wait)
    changed = since(source, affected_by) if affected_by is not None else None
    if affected_most is not None and changed is None:
        raise PlanError(
            f"--affected-most {affected_most}: want --affected-by REV, of whose points it is about; got none"
        )
    if on is not None and (source is None or changed is not None):
        raise PlanError(f"--on {on}: want --source, whose kernel it is for, and no --affected-by")
    named = kernel if source is None or kernel is not None else SOURCE
    chosen = load(file, testbed, sets, named, max_points, without, on or "hosts")
    own = own_kernel(source, testbed, kernel, cluster) if source is not None else None
    tree = described(source, own) if source is not None and own else {}
    if insecure and not cluster:
        raise PlanError("--insecure: want --cluster ADDRESS, of the scheduler that it is about; got none")
    if cluster and not kind_of(testbed).everywhere:
        raise PlanError(f"--cluster: want --testbed lab, the only one that every machine has; got {testbed!r}")
    pool = _cluster(cluster, insecure) if cluster else LocalPool(jobs)
    selected = find(testbed)
    if not own:
        selected.check(chosen)
    if changed is not None:
        on_kernel = partial(load, file, testbed, sets, max_points=max_points, without=without)
        chosen = of_affected(chosen, on_kernel, changed, results, jobs, affected_most)
        if not chosen.points:
            sys.exit(0)
    if last_failed or failed_in:
        chosen = _failed(chosen, results, failed_in)
    chosen = replace(chosen, tree=tree)
    _warn(chosen)

    from testctl.cli.exit_code import SKIPPED, exit_code
    from testctl.execution.pace import learn
    from testctl.execution.run import run_plan
    from testctl.report import Progress, print_place

    with interruptible("finished points are kept, go on with --resume", selected.interrupted):
        if not cluster and (why := _memory_shortage(chosen, jobs)):
            print(f"warning: {why}", file=sys.stderr)
        ready = selected.ready(chosen.points, Request(wall_limit, jobs, wait_s, own, commands=True))
        progress = Progress(len(chosen.points), Console(stderr=True))
        options = Options(results, out, jobs, resume, keep_captures=captures, report_jobs=report_jobs(testbed))
        judged = None if as_json else _print_verdicts
        policy = FirstFailure(chosen) if fail_fast else None
        done = run_plan(chosen, ready, options, progress, pool=pool, policy=policy, judged=judged)
    if not cluster:
        learn(chosen, done)
    if as_json:
        print(json.dumps(done.summary, indent=1))
    else:
        print_place(done, Console())
    on_github = verdict_files.on_github() if github is None else github
    verdict_files.write(done, file, files, on_github, sys.stderr if as_json else sys.stdout)
    code = exit_code(done)
    if code == SKIPPED:
        print(_nothing_measured(chosen, done), file=sys.stderr)
    sys.exit(code)


def report_jobs(testbed: str) -> int:
    """On a rack points come one by one, and this machine has nothing else to do when they are done."""
    return 1 if kind_of(testbed).local else len(os.sched_getaffinity(0))


def seconds(option: str, text: str) -> float:
    """A time such as "90s", "30m" or "1.5h" in seconds; option: whose value it is.  Raises PlanError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|min|h)", text)
    if match is None:
        raise PlanError(f"{option}: want a time such as 90s, 30m or 2h; got {text!r}")
    return float(match[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600}[match[2]]


def _warn(chosen: Plan) -> None:
    for sentence in remarks(chosen):
        print(f"warning: {sentence}", file=sys.stderr)


def own_kernel(source: str, testbed: str, kernel: str | None, cluster: str | None = None) -> Kernel:
    """The kernel of --source, built.  Raises PlanError where points can't run on it."""
    if kernel is not None:
        raise PlanError("--source, --kernel: want one of the two")
    if not kind_of(testbed).boots_kernels or cluster:
        raise PlanError(f"--source: want --testbed lab on this machine; got {cluster or testbed}")
    tree_kernel = built(source)
    remember(tree_kernel)  # for a replay
    return tree_kernel


def _failed(chosen: Plan, results: Path, run: Path | None) -> Plan:
    """The plan of the points that failed; ends the command where none did."""
    from testctl.cli.last_failed import newest_run, of_failed
    from testctl.results import load_run

    plan, summary = of_failed(chosen, load_run(run) if run else newest_run(results, chosen.name))
    print(summary, file=sys.stderr)
    if not plan.points:
        sys.exit(0)
    return plan


def _nothing_measured(chosen: Plan, done: Run) -> str:
    """The message for a run whose points were all skipped, with the command that leaves the unsupported tuples out."""
    from testctl.results.provenance import command_without

    reasons = list(dict.fromkeys(point.reason for point in done.points))
    more = f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
    lacking = {(entity, name) for point in done.points for entity, name in point.outcome.get("lacking", [])}
    command = command_without(chosen, lacking)
    remedy = f"\nwithout what can't be had here:\n  {command}" if command else ""
    return f"warning: nothing was measured, every point was skipped: {reasons[0]}{more}{remedy}"


def _print_verdicts(run: Run) -> Callable[[str], None]:
    """Print the verdicts, and then how the report comes on: that can take as long as the run did."""
    from testctl.report import DRAWN, Drawing, most_telling, print_summary

    print_summary(run, Console())
    return Drawing(len(most_telling(run.points, DRAWN)), Console(stderr=True)).drawn


def _memory_shortage(chosen: Plan, jobs: int) -> str:
    """Why the labs of a plan may lack the memory that they need, or "".  Raises TestbedError when a single lab does."""
    from testctl.cli.dry_run import lab_memory

    (each_mb, _), there_mb = lab_memory(chosen), free_mb()
    if alone := memory.shortage(each_mb, 1, there_mb):
        raise TestbedError(f"{chosen.file}: {alone}")
    return memory.shortage(each_mb, min(jobs, len(chosen.points)), there_mb)


def _cluster(address: str, insecure: bool) -> Pool:
    from testctl.execution.pool import POOLS

    if "cluster" not in POOLS.names():
        raise PlanError(
            f"--cluster: want the pool 'cluster'{POOLS.hint('cluster')} (make setup installs plugins/cluster)"
        )
    pool: Pool = POOLS.module("cluster").open_pool(address, insecure=insecure)
    return pool
