# SPDX-License-Identifier: Apache-2.0
"""`--affected-by REV`: the points that execute what a tree changed since a revision."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from testctl_agent.spec.errors import PlanError

from testctl.cli.interrupt import interruptible
from testctl.cli.made_run import made_run
from testctl.cli.source import built
from testctl.core.words import counted
from testctl.lab import coverage, git_tree
from testctl.lab.kernel import Kernel
from testctl.lab.source import split_revision
from testctl.plan import Plan
from testctl.plan.subset import counterparts, subset
from testctl.results import Run, layout, load_run
from testctl.system.text import first_of
from testctl.testbeds.choose import find

if TYPE_CHECKING:
    from testctl.coverage.affected import Affected, Change

METAVAR = "REV"
HELP = "with --source: only the points that execute a line which changed since this git revision, most often first"
MOST = "with --affected-by: at most so many of these points, those that differ most in what they execute"
KEPT = "coverage"
"""Directory, among the runs, of those on kernels that count what they execute."""
_SHOWN = 10


@dataclass(frozen=True)
class Since:
    """What differs between a commit of a tree and its files as they are, or another commit.

    changes  of each file: the texts of those that have lines which are counted, else None
    """

    directory: Path
    revision: str
    commit: str
    changes: Mapping[str, Change | None]


def since(source: str | None, revision: str) -> Since:
    """What changed; ends the command where nothing did.  Raises PlanError, TestbedError."""
    if source is None:
        raise PlanError(f"--affected-by {revision}: want --source DIR too, the git checkout of a kernel that changed")
    directory, other = split_revision(source)
    if not git_tree.is_repository(directory):
        raise PlanError(f"--affected-by {revision}: want a git checkout; {directory} is none")
    before = git_tree.commit_id(directory, revision)
    changes = _changes(directory, before, git_tree.commit_id(directory, other) if other else "")
    if not changes:
        print(f"nothing changed since {revision}: nothing to run", file=sys.stderr)
        sys.exit(0)
    return Since(directory, revision, before, changes)


def of_affected(
    plan: Plan, load_on: Callable[[str], Plan], changed: Since, results: Path, jobs: int, most: int | None = None
) -> Plan:
    """The plan of the points that a change concerns, which may be none.

    The plan is run once on a kernel of the revision that counts what it executes.

    load_on: the same plan, with every point on a kernel of that name
    most: points at most, not counting those that they are compared with

    Raises PlanError, TestbedError.
    """
    from testctl.coverage import coverage_of
    from testctl.coverage.affected import affected, most_different

    kernel = built(f"{changed.directory}@{changed.commit}", coverage.VARIANT)
    on_kernel = load_on(kernel.name)
    executed = coverage_of(_counted_run(on_kernel, kernel, results, jobs), kernel=kernel, since_boot=True)
    concerned = affected(executed, changed.changes)
    times = dict(zip(executed.points, concerned.executions.tolist(), strict=True))
    of_counted = {other.id: point.id for point, other in zip(plan.points, on_kernel.points, strict=True)}
    # A point without counters was broken or skipped: what it executes is not known, so it comes first.
    unknown = [id_ for other, id_ in of_counted.items() if other not in times]
    of_plan = {id_: times.get(other, math.inf) for other, id_ in of_counted.items()}
    ids = {id_ for id_, count in of_plan.items() if count or concerned.why_all}
    order = {id_: -count for id_, count in of_plan.items()}
    there = len(ids)
    if most is not None and there > most:
        among = [place for place, id_ in enumerate(executed.points) if of_counted[id_] in ids]
        others = most_different(executed, concerned, among, max(most - len(unknown), 0))
        kept = [*unknown, *(of_counted[executed.points[place]] for place in others)][:most]
        ids, order = set(kept), {id_: place for place, id_ in enumerate(kept)}
    compared = counterparts(plan, ids)
    _print(plan, changed.revision, concerned, there, len(compared))
    if len(ids) < there:
        print(f"of these {len(ids)} are run, which differ most in what they execute", file=sys.stderr)
    chosen = subset(plan, ids | compared)
    return replace(chosen, points=tuple(sorted(chosen.points, key=lambda point: order.get(point.id, len(order)))))


def _changes(directory: Path, before: str, after: str) -> dict[str, Change | None]:
    from testctl.coverage.affected import Change

    def text(commit: str, name: str) -> str:
        return git_tree.text(directory, commit, name) if git_tree.has(directory, commit, name) else ""

    changes: dict[str, Change | None] = {}
    for name in git_tree.changed(directory, before, after):
        changes[name] = None
        if name.startswith(("net/", "include/")) and name.endswith((".c", ".h")):
            file = directory / name
            there = file.read_text(encoding="utf-8", errors="replace") if not after and file.is_file() else ""
            now = text(after, name) if after else there
            changes[name] = Change(text(before, name), now, git_tree.difference(directory, before, after, name))
    return changes


def _counted_run(plan: Plan, kernel: Kernel, results: Path, jobs: int) -> Run:
    """The plan's run on a kernel that counts, which is kept."""
    ids = hashlib.sha256(" ".join(sorted(point.id for point in plan.points)).encode()).hexdigest()
    where = results / KEPT / f"{kernel.key}-{ids[:12]}"
    if (where / layout.SUMMARY).is_file():
        return load_run(where)

    from testctl.execution.options import Options
    from testctl.execution.pool import LocalPool

    points_text = counted(len(plan.points), "point")
    print(f"once: {points_text} on a kernel that counts what it executes, kept in {where}", file=sys.stderr)
    with interruptible("", find(plan.testbed).interrupted):
        return made_run(plan, Options(results, where, jobs), LocalPool(jobs), kernel)


def _print(plan: Plan, revision: str, concerned: Affected, points: int, compared: int) -> None:
    """How many points, and which changed lines they leave out."""
    lines = [f"{points} of {counted(len(plan.points), 'point')} execute what changed since {revision}"]
    if concerned.why_all:
        lines = [f"every point can be concerned by what changed since {revision}: {first_of(concerned.why_all, 3)}"]
    if compared:
        lines.append(f"{compared} more are run because they are compared with these")
    if concerned.not_built:
        lines.append(f"not part of this kernel: {first_of(concerned.not_built, 3)}")
    if concerned.unreached:
        lines.append(f"{counted(len(concerned.unreached), 'line')} of the change that no point executes:")
        lines.append(f"  {first_of(concerned.unreached, _SHOWN, chr(10) + '  ')}")
    print("\n".join(lines), file=sys.stderr)
