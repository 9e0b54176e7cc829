# SPDX-License-Identifier: Apache-2.0
"""Admits the points of a nightly run that fit into the time budget, and adds its entries to the summary."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testctl.core.testbed_kind import kind_of
from testctl.nightly.earlier import KEY
from testctl.nightly.schedule import Schedule
from testctl.plan import Plan, Point, coverage
from testctl.plan.prioritise import gaps
from testctl.results.provenance import command_of, from_here

AIM = 0.8
"""The share of the budget that a first run fills, so that the next, if somewhat slower, still runs all of it."""
IDLE = 0.6
"""A run that left points out and took less than this share of its target makes the next one longer."""


def presumed(plan: Plan, budget_s: float, jobs: int) -> int | None:
    """Cost units of a first run's budget where they must be known before the first point; None: the clock says.

    On wall-clock testbeds a unit is about a ms; a rack runs points in the order of kernels instead of their value.
    """
    return None if kind_of(plan.testbed).deterministic else int(AIM * budget_s * 1000 * jobs)


class TimeBudget:
    """Admits the points of a schedule while the clock allows (testctl.execution.run.AdmissionPolicy).

    capacity   cost units that chose the schedule; None: a first run, the clock alone cuts it
    budget_s   wall seconds for all points
    timed      whether the clock may end the run; not when it repeats another
    """

    def __init__(
        self,
        chosen: Schedule,
        budget_s: float,
        jobs: int,
        capacity: int | None,
        since: str = "",
        timed: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chosen = chosen
        self._budget_s = budget_s
        self._jobs = jobs
        self._capacity = capacity
        self._since = since
        self._timed = timed
        self._clock = clock
        self._start: float | None = None
        self._admitted: set[str] = set()
        self._reused_s = 0.0
        self._spent = 0.0
        self._cost = 0
        self._last = 0.0
        self.late = False
        """Whether the clock ended the run."""

    def admits(self, point: Point) -> bool:
        """Whether the point would end in time; after a refusal no point is admitted.  The first point always is."""
        self._elapsed()
        if self._timed and not self.late and (self._admitted or self._cost):
            limit = self._budget_s * (AIM if self._capacity is None else 1.0)
            per_cost = self._spent / self._cost if self._cost else 0.001
            self.late = self._elapsed() + self._chosen.cost_of(point) * per_cost > limit
        if not self.late:
            self._admitted.add(point.id)
        return not self.late

    def ended(self, point: Point, wall_s: float, verdict: str = "") -> None:
        """Count a finished point; one that was not admitted is of an interrupted run, and its time counts too."""
        if point.id not in self._admitted:
            self._reused_s += wall_s / self._jobs
        self._spent += wall_s
        self._cost += self._chosen.cost_of(point)
        self._last = self._elapsed()

    def failed(self, point: Point) -> None:
        """A failure ends no nightly run."""

    def _elapsed(self) -> float:
        """Wall seconds since the first point was requested, without the wait for a rack's machines."""
        if self._start is None:
            self._start = self._clock()
        return self._clock() - self._start + self._reused_s

    def summary(self, plan: Plan, run: Path) -> dict[str, Any]:
        """For summary.json, {"reproduce": …, "nightly": …} (docs/results.md)."""
        done = {point.id for point in plan.points}
        not_run = [p for p in (*self._chosen.points, *self._chosen.left_out) if p.id not in done]
        again = command_of(plan, "nightly") or f"testctl nightly {plan.name}.yaml"
        return {
            "reproduce": f"{again} {shlex.join(['--like', from_here(run)])}",
            KEY: {
                "budget_s": self._budget_s,
                "jobs": self._jobs,
                "took_s": round(self._last, 3),
                "ended_by": "the clock" if self.late else "the estimate" if not_run else "all points run",
                "capacity": self._next(bool(not_run)),
                "since": self._since or None,
                "first": list(self._chosen.first),
                "coverage": [
                    {"strength": c.strength, "covered": c.covered, "feasible": c.feasible, "sampled": c.sampled}
                    for c in coverage(plan)
                ],
                "missing_pairs": [gap.to_json() for gap in gaps(plan, [point.levels for point in plan.points])],
                "not_run": [{"id": point.id, "tuples": [list(tuple_) for tuple_ in point.tuples]} for point in not_run],
            },
        }

    def _next(self, left: bool) -> int:
        """Cost units that the next run of this budget may hold."""
        if self.late:
            return self._cost
        aim = AIM * self._budget_s
        if self._capacity is not None and (not left or not self._timed or self._last >= IDLE * aim):
            return self._capacity
        return int(self._cost * max(1.0, aim / self._last)) if self._last else self._cost
