# SPDX-License-Identifier: Apache-2.0
"""testctl nightly."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from testctl_agent.spec.errors import PlanError

from testctl.cli import complete
from testctl.cli.affected import of_affected, since
from testctl.cli.interrupt import interruptible
from testctl.cli.options import AsJson, Results
from testctl.cli.runs import (
    AffectedBy,
    KernelName,
    Sets,
    TestbedName,
    Wait,
    Without,
    load,
    own_kernel,
    report_jobs,
    seconds,
)
from testctl.cli.source import HELP, METAVAR, described
from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.core.words import counted
from testctl.execution.options import Options
from testctl.results.layout import same_names
from testctl.system import checkout
from testctl.testbeds.choose import find
from testctl.testbeds.testbed import Request

if TYPE_CHECKING:
    from testctl.nightly import LastRun, Schedule, TimeBudget
    from testctl.plan import Plan
    from testctl.results import Run

PLAN, CORNERS = "plans/nightly.yaml", "plans/corners*.yaml"
MAX_POINTS = 10_000
GAPS_SHOWN = 6
WORST_FIRST = (3, 1, 4, 0)
"""Exit codes of a run (cli/exit_code.py)."""


def nightly(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PLAN…]",
            help=f"default: {PLAN}, and without --set and the like {CORNERS}",
            autocompletion=complete.plans,
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="for all points of a plan, such as 30m")
    ] = "30m",
    testbed: TestbedName = DEFAULT,
    sets: Sets = None,
    kernel: KernelName = None,
    without: Without = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, max=256, help="points at once (default: one a processor in the lab, else 1)"
        ),
    ] = None,
    results: Results = Path("results"),
    resume: Annotated[bool, typer.Option("--resume", help="reuse the points of an interrupted run")] = False,
    like: Annotated[
        Path | None, typer.Option("--like", metavar="RUN", help="the points of this run, without a time limit")
    ] = None,
    captures: Annotated[bool, typer.Option("--captures", help="keep each host's packets as a pcap file too")] = False,
    wait: Wait = "0s",
    source: Annotated[str | None, typer.Option("--source", metavar=METAVAR, help=HELP)] = None,
    affected_by: AffectedBy = None,
    as_json: AsJson = False,
) -> None:
    """Run the most valuable points of each plan that fit into a budget, and print the changes since the last one."""
    budget_s, wait_s = seconds("--budget", budget), seconds("--wait", wait)
    if not budget_s:
        raise PlanError(f"--budget: want more than no time; got {budget!r}")
    changed = bool(sets or kernel or without or source or like) or testbed != DEFAULT
    files = files or [checkout.root() / PLAN, *(() if changed else sorted(checkout.root().glob(CORNERS)))]
    if like is not None and len(files) > 1:
        raise PlanError(f"--like {like}: want the plan of that run; got {counted(len(files), 'plan')}")
    if wrong := same_names(files):
        raise PlanError("\n".join(wrong))
    since_then = since(source, affected_by) if affected_by is not None else None
    own = own_kernel(source, testbed, kernel) if source is not None else None
    at_once = jobs or (len(os.sched_getaffinity(0)) if kind_of(testbed).deterministic else 1)
    selected, plans = find(testbed), []
    for file in files:
        plan = load(file, testbed, sets, own.name if own else kernel, MAX_POINTS, without)
        plan = replace(plan, tree=described(source, own) if source is not None and own else {})
        if not own:
            selected.check(plan)
        if since_then is not None:
            on_kernel = partial(load, file, testbed, sets, max_points=MAX_POINTS, without=without)
            plan = of_affected(plan, on_kernel, since_then, results, at_once)
        plans += [plan] if plan.points else []
    if not plans:
        sys.exit(0)

    from testctl.cli.exit_code import exit_code
    from testctl.compare import changes
    from testctl.execution.pace import learn
    from testctl.execution.run import run_plan
    from testctl.nightly import interrupted, last_run
    from testctl.report import Progress

    codes, documents = set(), []
    with interruptible("finished points are kept, go on with --resume", selected.interrupted):
        last_runs = [last_run(results, plan) for plan in plans]
        budgeted = [_budgeted(plan, budget_s, at_once, last, like) for plan, last in zip(plans, last_runs, strict=True)]
        for plan, last, (chosen, limit) in zip(plans, last_runs, budgeted, strict=True):
            stopped = interrupted(results, plan) if resume else None
            options = Options(
                results, None, at_once, stopped is not None, runs=stopped.name if stopped else "",
                keep_captures=captures, report_jobs=report_jobs(testbed),
            )  # fmt: skip
            ready = selected.ready(chosen.points, Request(None, at_once, wait_s, own, commands=True))
            before = last.run if last else None
            progress = Progress(len(chosen.points), Console(stderr=True))
            now = run_plan(replace(plan, points=chosen.points), ready, options, progress, policy=limit)
            learn(plan, now)
            since_last = {"since": before.name, **changes(before, now).to_json()} if as_json and before else None
            documents.append({"summary": now.summary, "changed": since_last})
            if not as_json:
                _print(before, now, Console(soft_wrap=True, highlight=False, markup=False))
            codes.add(exit_code(now))
    if as_json:
        print(json.dumps(documents if len(plans) > 1 else documents[0], indent=1))
    sys.exit(next(code for code in WORST_FIRST if code in codes))


def _budgeted(
    plan: Plan, budget_s: float, jobs: int, last: LastRun | None, like: Path | None
) -> tuple[Schedule, TimeBudget]:
    from testctl.nightly import TimeBudget, alike, entry_of, presumed, schedule
    from testctl.nightly import like as like_run
    from testctl.results import load_run

    since = last.run.name if last else ""
    if like is not None:
        run = load_run(like)
        entry = entry_of(run.summary)
        if entry is None:
            raise PlanError(f"--like {like}: want a complete run of testctl nightly; got another")
        if not alike(plan, run.summary):
            made = run.summary.get("reproduce")
            raise PlanError(
                f"--like {like}: want a run with the same --testbed, --set and --without; it was made by: {made}"
            )
        chosen = like_run(plan, run)
        return chosen, TimeBudget(chosen, entry["budget_s"], entry["jobs"], entry["capacity"], since, timed=False)
    capacity = last.capacity(budget_s, jobs) if last else presumed(plan, budget_s, jobs)
    chosen = schedule(plan, capacity, last.first if last else ())
    if not chosen.points or chosen.cost_of(chosen.points[0]) > 1000 * budget_s:
        raise PlanError(f"--budget: want time for one point of {plan.name} at least; {budget_s:g} s is not enough")
    return chosen, TimeBudget(chosen, budget_s, jobs, capacity, since)


def _print(before: Run | None, now: Run, console: Console) -> None:
    from testctl.compare import changes, print_changes
    from testctl.report import print_summary

    print_summary(now, console)
    _print_coverage(now, console)
    if before is None:
        console.print("\nthe first nightly run of this plan here: there is nothing to compare with")
        return
    console.print(f"\nsince {before.name} ({before.summary.get('started', '')}):")
    comparison = changes(before, now)
    print_changes(comparison, console)
    if comparison.differs:
        console.print(f"all of it: testctl compare {before.path} {now.path} --all")


def _minutes(seconds: float) -> str:
    """ "20 s", "2.5 min"."""
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.1f}".removesuffix(".0") + " min"


def _print_coverage(now: Run, console: Console) -> None:
    from testctl.cli.dry_run import COMBINATIONS
    from testctl.nightly import KEY

    entry = now.summary[KEY]
    console.print(
        f"\n{len(now.points)} of {counted(len(now.points) + len(entry['not_run']), 'point')}"
        f" in {_minutes(entry['took_s'])} of a budget of {_minutes(entry['budget_s'])}; ended by {entry['ended_by']}"
    )
    for coverage in entry["coverage"]:
        what = COMBINATIONS[coverage["strength"]] + (", from a sample" if coverage["sampled"] else "")
        console.print(f"covers {coverage['covered']} of {coverage['feasible']} {what}")
    gaps = entry["missing_pairs"]
    for gap in gaps[:GAPS_SHOWN]:
        console.print(f"  {' with '.join(gap['of'])}: {gap['covered']} of {gap['feasible']} pairs")
    if len(gaps) > GAPS_SHOWN:
        console.print(f"  and {len(gaps) - GAPS_SHOWN} more, in summary.json")
