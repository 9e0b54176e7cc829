# SPDX-License-Identifier: Apache-2.0
"""`--fail-fast`: no point is begun after the first that failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testctl.plan import Plan, Point
from testctl.plan.judge import FAILED

KEY = "fail_fast"
"""In summary.json."""


class FirstFailure:
    """Admits points until one that this run measured fails (testctl.execution.run.AdmissionPolicy).

    Points in progress are finished.  A failed point of an earlier run does not stop the run: `--resume
    --fail-fast` continues after it.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._admitted: set[str] = set()
        self._begun: set[str] = set()
        self._first = ""

    def admits(self, point: Point) -> bool:
        """Whether no point has failed so far."""
        if not self._first:
            self._admitted.add(point.id)
        return not self._first

    def ended(self, point: Point, wall_s: float, verdict: str) -> None:
        self._begun.add(point.id)
        if verdict in FAILED:
            self.failed(point)

    def failed(self, point: Point) -> None:
        if not self._first and point.id in self._admitted:
            self._first = point.id

    def summary(self, plan: Plan, run: Path) -> dict[str, Any]:
        """For summary.json: {"fail_fast": {"failed": the point that stopped the run or "", "not_run": [ids]}}."""
        left = [point.id for point in self._plan.points if point.id not in self._begun]
        return {KEY: {"failed": self._first, "not_run": left}}
