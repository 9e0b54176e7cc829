# SPDX-License-Identifier: Apache-2.0
"""The newest finished run of a plan, if it is still valid as it is."""

from __future__ import annotations

from testctl_agent.spec.errors import PlanError

from testctl.execution.assess import analysis_keys
from testctl.execution.options import Options
from testctl.plan import Plan
from testctl.results import Run, layout, load_run
from testctl.results.provenance import Provenance
from testctl.results.reuse import as_measured
from testctl.testbeds.ready import ReadyTestbed


def finished(plan: Plan, testbed: ReadyTestbed, options: Options) -> Run | None:
    """The newest finished run of exactly this plan whose every point could be taken over unchanged."""
    keys = analysis_keys()
    for path in sorted(options.results_dir.glob(f"*-{plan.name}"), reverse=True):
        if path.is_symlink() or not all((path / name).is_file() for name in (layout.SUMMARY, layout.REPORT)):
            continue
        try:
            run = load_run(path)
        except PlanError:  # a damaged one is not taken over
            continue
        made = Provenance.from_json(run.summary)
        if (run.plan_text, made.overrides, made.left_out) != (plan.text, plan.overrides, plan.left_out):
            continue
        places = {point.id: layout.point_dir(path, point.id) for point in plan.points}
        if set(places) == {point.id for point in run.points} and all(
            as_measured(places[point.id], testbed.code_key(point), keys, point.conditions) for point in plan.points
        ):
            return run
    return None
