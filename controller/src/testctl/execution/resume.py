# SPDX-License-Identifier: Apache-2.0
"""`--resume`: decides which points are reused from earlier runs and which are run again, with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from testctl.execution.assess import analysis_keys, assess
from testctl.plan import Point
from testctl.results import RunPoint, layout, load_point
from testctl.results.reuse import Kept, UnusableError, kept_points, take, unusable
from testctl.testbeds.point_spec import spec_of


class Resume:
    """Reuses points of earlier runs, one by one, and records the decision for each.

    places  directories of runs, with a pattern of the names of those that may be taken from
    tell  called with a line of text for each reason why points of a run can't be reused
    captures  whether a point that recorded packets must have kept its pcap files
    """

    def __init__(
        self, places: Sequence[tuple[Path, str]], run: Path, tell: Callable[[str], None], captures: bool = False
    ) -> None:
        self._places = places
        self._run = run
        self._tell = tell
        self._captures = captures
        self._said: set[str] = set()
        self._reused: Counter[str] = Counter()
        self._computed: list[str] = []
        self._again: list[dict[str, str]] = []

    def take(self, point: Point, code_key: str) -> RunPoint | None:
        """The point of an earlier run, copied into this run; None if it has to be run.

        Raises TestbedError when it can't be written here.
        """
        reasons: list[tuple[Kept, str]] = []
        for kept in (reusable for place, runs in self._places for reusable in kept_points(place, point.id, runs)):
            why = unusable(kept, code_key, analysis_keys()["records"]) or self._lacking(kept, point)
            if not why:
                try:
                    again = partial(assess, conditions=point.conditions)
                    computed = take(self._run, kept, analysis_keys(), again, point.conditions)
                except UnusableError as error:
                    why = str(error)
                    self._once(f"point {point.id} of {kept.run} is not taken: {why}")
                else:
                    self._reused[kept.run] += 1
                    self._computed += [point.id] if computed else []
                    return load_point(layout.point_dir(self._run, point.id), point)
            reasons.append((kept, why))
        if reasons:
            kept, why = reasons[0]
            self._once(f"points of {kept.run} are run again: {why}")
            self._again.append({"point": point.id, "run": kept.run, "why": why})
        return None

    def _lacking(self, kept: Kept, point: Point) -> str:
        """The reason if pcap files are requested and were not kept, else ""."""
        if not self._captures or (kept.path / layout.CAPTURES).is_dir():
            return ""
        recorded = any("capture" in collectors for collectors in spec_of(point).collect.values())
        return "its captures were not kept (--captures)" if recorded else ""

    def _once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._tell(line)

    def summary(self) -> dict[str, Any]:
        """For summary.json: {"resumed": {"reused": {run: points}, "computed_again": [ids], "run_again": […]}}."""
        return {"resumed": {"reused": dict(self._reused), "computed_again": self._computed, "run_again": self._again}}
