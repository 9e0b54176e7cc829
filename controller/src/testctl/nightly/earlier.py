# SPDX-License-Identifier: Apache-2.0
"""Reads earlier nightly runs of a plan: the capacity of a budget, and the points to run first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.untrusted import misfit

from testctl.compare import changed_points, changes
from testctl.plan import Plan
from testctl.results import Run, load_run, shapes
from testctl.results.layout import IN_PROGRESS, SUMMARY
from testctl.results.provenance import Provenance
from testctl.results.reader import read_json

KEY = "nightly"
"""Entry of summary.json that marks a nightly run."""
_SHAPE = {"budget_s": float, "jobs": int, "capacity": int}
GOOD = frozenset({"pass", "skip"})


def interrupted(results: Path, plan: Plan) -> Path | None:
    """The newest run of a plan that was stopped after its last complete nightly run; None when there is none."""
    complete = nightly_runs(results, plan)
    name = f"{plan.name}{IN_PROGRESS}"  # behind the time, which has no -; a plan's name may end in that of another
    stopped = sorted(path for path in results.glob(f"*-{name}") if path.name.partition("-")[2] == name)
    return stopped[-1] if stopped and (not complete or stopped[-1].name > complete[-1].name) else None


@dataclass(frozen=True)
class LastRun:
    """The last run, and the points to begin with: those that did not pass, or that differ from the run before it."""

    run: Run
    first: frozenset[str]

    def capacity(self, budget_s: float, jobs: int) -> int:
        """Capacity of the budget in cost units for that number of jobs, from the last run."""
        entry = self.run.summary[KEY]
        if (entry["budget_s"], entry["jobs"]) == (budget_s, jobs):
            return int(entry["capacity"])
        return int(entry["capacity"] * (budget_s / entry["budget_s"]) * (jobs / entry["jobs"]))


def nightly_runs(results: Path, plan: Plan) -> list[Path]:
    """The complete nightly runs of a plan on its testbed, with its --set and --without; oldest first.

    Unreadable ones are skipped.
    """
    runs = []
    for path in sorted(results.glob(f"*-{plan.name}")):
        if path.is_symlink() or path.name.endswith(IN_PROGRESS) or not (path / SUMMARY).is_file():
            continue
        try:
            entry = read_json(path / SUMMARY, shapes.HEAD)
        except PlanError:
            continue
        if entry.get("plan") == plan.name and entry_of(entry) is not None and alike(plan, entry):
            runs.append(path)
    return runs


def entry_of(summary: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A nightly run's entry; None: it is another run, or lacks what the next one needs."""
    entry = summary.get(KEY)
    return None if misfit(entry, _SHAPE) else entry


def alike(plan: Plan, summary: Mapping[str, Any]) -> bool:
    """Whether a run, by its summary, was made on the plan's testbed, with its --set and --without."""
    made = Provenance.from_json(summary)
    return (made.testbed, made.overrides, made.left_out) == (plan.testbed, plan.overrides, plan.left_out)


def last_run(results: Path, plan: Plan) -> LastRun | None:
    """The newest of nightly_runs() whose points can be read; None when there is none."""
    whole = _whole(nightly_runs(results, plan))
    if (run := next(whole, None)) is None:
        return None
    first = {point.id for point in run.points if point.verdict not in GOOD}
    if (before := next(whole, None)) is not None:
        first |= changed_points(changes(before, run))
    return LastRun(run, frozenset(first))


def _whole(paths: Sequence[Path]) -> Iterator[Run]:
    """The runs that can be read, the last first."""
    for path in reversed(paths):
        with suppress(PlanError):
            yield load_run(path)
