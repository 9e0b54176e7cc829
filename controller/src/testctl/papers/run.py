# SPDX-License-Identifier: Apache-2.0
"""Runs the plans of papers one after another."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.execution.options import Options
from testctl.execution.pool import LocalPool
from testctl.execution.run import Progress, run_plan
from testctl.metrics import metric_names
from testctl.papers.scorecard import Scorecard
from testctl.plan import CLAIM_PLANS, Plan, load_plan
from testctl.results import collect_versions, layout
from testctl.rules import rules
from testctl.system import checkout
from testctl.system.worker_pool import workers
from testctl.testbeds.ready import ReadyTestbed


def load_papers(files: Sequence[Path], kernel: str | None = None) -> list[Plan]:
    """The plans; by default all of CLAIM_PLANS, or of papers alone where a kernel is named: some of RFCs set what only
    later kernels have.  Raises PlanError with the errors of all of them."""
    places = CLAIM_PLANS[:1] if kernel is not None else CLAIM_PLANS
    chosen = list(files) or [
        plan for place in places for plan in sorted(checkout.root().joinpath(*place).glob("*.yaml"))
    ]
    plans, wrong = [], layout.same_names(chosen)
    for file in chosen:
        overrides = [f"hosts.kernel='{kernel}'"] if kernel is not None else []
        try:
            plans.append(load_plan(file, metrics=metric_names(), rules=rules(), overrides=overrides, paper=True))
        except PlanError as error:
            wrong.append(str(error))
    if wrong:
        raise PlanError("\n".join(wrong))
    if not plans:
        raise PlanError(f"{checkout.root() / 'plans'}: want plans in paper/ or rfc/; there is none")
    return plans


def run_papers(
    plans: Sequence[Plan], bed: ReadyTestbed, options: Options, progress: Progress, kernel: str | None = None
) -> Scorecard:
    """Run every plan (a run each, below options.results_dir) and gather their claims."""
    started, clock = datetime.now(UTC), time.monotonic()
    with progress, workers(options.jobs) as kept:
        pool = LocalPool(options.jobs, kept)
        runs = [run_plan(plan, bed, options, _OfPlan(progress, plan.name), pool=pool) for plan in plans]
    kernels = {name: full for run in runs for name, full in run.versions.get("kernels", {}).items()}
    versions = collect_versions(kernels=kernels)
    return Scorecard(
        runs=runs,
        started=started.isoformat(timespec="seconds"),
        wall_s=time.monotonic() - clock,
        versions=versions,
        kernel=kernel or "",
    )


@dataclass(frozen=True)
class _OfPlan:
    """Progress of one plan, as part of the progress of all."""

    whole: Progress
    plan: str

    def __enter__(self) -> _OfPlan:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def done(self, name: str, verdict: str = "", wall_s: float | None = None, *, free: bool = False) -> None:
        self.whole.done(f"{self.plan}: {name}", verdict, wall_s, free=free)

    def note(self, line: str) -> None:
        self.whole.note(f"{self.plan}: {line}")
