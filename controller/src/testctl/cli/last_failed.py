# SPDX-License-Identifier: Apache-2.0
"""`testctl run --last-failed`: the points that failed in an earlier run."""

from __future__ import annotations

from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.core.words import counted
from testctl.plan import Plan
from testctl.plan.judge import FAILED
from testctl.plan.subset import counterparts, subset
from testctl.results import Run, load_run
from testctl.results.layout import SUMMARY, safe_name


def newest_run(results: Path, plan: str) -> Run:
    """The newest complete run of a plan.  Raises PlanError when there is none."""
    for path in sorted(results.glob(f"*Z*-{safe_name(plan, 'plan')}"), reverse=True):
        if not path.is_symlink() and (path / SUMMARY).is_file():
            run = load_run(path)
            if run.summary.get("plan") == plan:
                return run
    raise PlanError(f"--last-failed: want a complete run of {plan} in {results}; there is none")


def of_failed(plan: Plan, run: Run) -> tuple[Plan, str]:
    """(The plan of the points that failed, and of those that expectations compare them with; what it is, in words).

    A point failed that was `fail`, `invalid` or `broken`, or that an expectation rests on which is.  Without points
    when none failed.  Raises PlanError when some did, and the plan no longer has any of them.
    """
    failed = {point.id for point in run.points if point.verdict in FAILED}
    expectations = [judged for judged in run.summary.get("expectations", []) if judged.get("verdict") in FAILED]
    failed |= {str(point) for expectation in expectations for point in expectation.get("points", [])}
    again = [point for point in plan.points if point.id in failed]
    if not failed:
        return subset(plan, ()), f"no point of {run.name} failed: nothing to run"
    if not again:
        raise PlanError(
            f"{run.path}: want failed points of {plan.file}; none of its {len(failed)} is one (other values or --set?)"
        )
    ids = {point.id for point in again}
    others = counterparts(plan, ids)
    summary = f"{len(again)} of {counted(len(plan.points), 'point')} failed in {run.name}"
    summary += f"; {len(others)} more are run because they are compared with these" if others else ""
    lost = len(failed) - len(again)
    summary += f"; {lost} that failed are not in this plan" if lost else ""
    return subset(plan, ids | others), summary
