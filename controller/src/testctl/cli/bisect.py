# SPDX-License-Identifier: Apache-2.0
"""testctl bisect."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from testctl_agent.spec.errors import PlanError

from testctl.cli import complete
from testctl.cli.interrupt import interruptible
from testctl.cli.options import AsJson
from testctl.cli.runs import MaxPoints, On, PlanFile, Sets, Without, load
from testctl.cli.search import near
from testctl.cli.source import BuildProgress
from testctl.lab.tree_kernel import SOURCE
from testctl.plan.diagnostics import show
from testctl.plan.subset import subset

if TYPE_CHECKING:
    from testctl.bisect.criterion import Criterion
    from testctl.bisect.repository import Commit
    from testctl.bisect.search import Step
    from testctl.plan import Plan

UNDECIDED = 1
"""The exit code when only commits are left that can't be judged."""


def bisect(
    file: PlanFile,
    source: Annotated[Path, typer.Option("--source", metavar="DIR", help="a git checkout of a kernel tree")],
    good: Annotated[str, typer.Option("--good", metavar="REV", help="a revision that is good, an ancestor of --bad")],
    bad: Annotated[str, typer.Option("--bad", metavar="REV", help="a revision that is bad")],
    point: Annotated[str, typer.Option("--point", metavar="ID", help="only this point of the plan")] = "",
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="[FLOW.]NAME",
            autocompletion=complete.metrics,
            help="bad: nearer to its value at --bad than at --good",
        ),
    ] = "",
    expect: Annotated[str, typer.Option("--expect", metavar="NAME", help="bad: this expectation fails")] = "",
    digest: Annotated[bool, typer.Option("--digest", help="bad: other records than at --good")] = False,
    on: On = None,
    sets: Sets = None,
    without: Without = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="default: results/bisect/<plan>-<good>-<bad>")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with a bisection that was interrupted")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="of make")] = os.cpu_count() or 1,
    max_points: MaxPoints = 100,
    as_json: AsJson = False,
) -> None:
    """Find the commit of a kernel tree that makes a plan fail, changes a metric, or changes any packet.

    Exit 0: found; 1: only commits are left that can't be judged; 2: bad input; 3: the lab failed, or does not repeat.
    """
    from testctl.bisect import repository
    from testctl.bisect.measure import Bench
    from testctl.bisect.search import search
    from testctl.bisect.write import PAGE, line_of, lines, to_json, write

    criterion = _criterion(metric, expect, digest)
    tree = source.resolve()
    if not tree.is_dir():
        raise PlanError(f"--source {source}: want a git checkout of a kernel tree; there is no such directory")
    ends = [_commit(tree, option, revision) for option, revision in (("--good", good), ("--bad", bad))]
    repository.between(tree, *ends)
    plan = _chosen(load(file, "lab", sets, SOURCE, max_points, without, on or "hosts"), point, criterion)
    name = f"{plan.name}-{ends[0].id[:12]}-{ends[1].id[:12]}"
    directory = out or Path("results") / "bisect" / name
    _begin(directory, resume)

    def print_step(step: Step) -> None:
        print(line_of(step), file=sys.stderr, flush=True)

    with interruptible("what was judged is kept, go on with --resume"), BuildProgress() as progress:
        bench = Bench(tree, SOURCE, plan, directory.resolve(), _key(plan), progress, jobs)
        result = search(bench, ends[0], ends[1], criterion, print_step)
    write(result, directory)
    if as_json:
        print(json.dumps(to_json(result), indent=1))
    else:
        print("\n".join([*lines(result), f"report  {directory / PAGE}"]))
    sys.exit(0 if result.culprit else UNDECIDED)


def _criterion(metric: str, expect: str, digest: bool) -> Criterion:
    from testctl.bisect.criterion import Criterion
    from testctl.metrics import metric_names

    if sum(map(bool, (metric, expect, digest))) > 1:
        raise PlanError("want one of --metric, --expect and --digest")
    name = metric.rpartition(".")[2]
    if metric and name not in metric_names():
        raise PlanError(f"--metric: no metric {show(name)}{near(name, metric_names())}; see testctl metrics")
    return Criterion(expect, metric, digest)


def _commit(tree: Path, option: str, revision: str) -> Commit:
    from testctl.bisect import repository

    try:
        return repository.commit(tree, revision)
    except PlanError as error:
        raise PlanError(f"{option}: {error}") from error


def _chosen(plan: Plan, point: str, criterion: Criterion) -> Plan:
    """The plan, or the one point of it."""
    names = [expectation.name for expectation in plan.expectations]
    if criterion.expect and criterion.expect not in names:
        raise PlanError(f"--expect {criterion.expect!r}: want an expectation of the plan; there are: "
                        f"{', '.join(names) or 'none'}")  # fmt: skip
    if not (names or criterion.metric or criterion.digest):
        raise PlanError(f"{plan.file}: it expects nothing; want an expectation, --metric NAME or --digest")
    if not point:
        return plan
    every = [planned.id for planned in plan.points]
    ids = [id_ for id_ in every if id_.startswith(point)]
    if len(ids) != 1:
        raise PlanError(f"--point {point!r}: want the id of one point, as testctl run PLAN --source DIR shows it; "
                        f"there are {', '.join(ids or every[:8])}")  # fmt: skip
    return subset(plan, ids)


def _begin(directory: Path, resume: bool) -> None:
    from testctl.bisect.measure import COMMITS

    if (directory / COMMITS).is_dir() and not resume:
        raise PlanError(f"{directory}: a bisection is there already; go on with --resume, or want another --out DIR")
    try:
        (directory / COMMITS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlanError(f"{directory}: can't be made: {error.strerror}") from error


def _key(plan: Plan) -> str:
    """A hash of what determines a measurement together with the commit: points, expectations, the lab's code, kernels
    of other hosts.
    """
    from testctl.execution.assess import analysis_keys
    from testctl.lab.built import built
    from testctl.testbeds.lab import code_hash
    from testctl.testbeds.point_spec import kernels_of

    others = {name for point in plan.points for name in kernels_of(point)} - {SOURCE}
    parts = [code_hash(), plan.text, *plan.overrides, *(point.id for point in plan.points), str(analysis_keys())]
    parts += [str(built(name)) for name in sorted(others)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
