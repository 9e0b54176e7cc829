# SPDX-License-Identifier: Apache-2.0
"""A run whose points several processes request: each point is run once, by the first process that needs it."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from testctl.execution.point import run_one
from testctl.plan import Expectation, ExpectationVerdict, Plan, Point, PointVerdict, evaluate
from testctl.plan.judge import counterpart, matching
from testctl.results import RunPoint, layout, load_point
from testctl.results.work import WORK
from testctl.testbeds.ready import ReadyTestbed


class SharedRun:
    """A run in progress at `path`, created by any of the processes; `make_testbed` is called for the first point."""

    def __init__(self, plan: Plan, path: Path, make_testbed: Callable[[], ReadyTestbed]) -> None:
        self.plan = plan
        self.path = path
        self._make_testbed = make_testbed

    @cached_property
    def _bed(self) -> ReadyTestbed:
        return self._make_testbed()

    def result(self, point: Point) -> RunPoint:
        """The point's result; runs the point if this run lacks it.

        Waits for another process that runs it; if that dies, the next process runs it.
        """
        place = layout.point_dir(self.path, point.id)
        with self._alone(point.id):
            if not place.exists():
                shutil.rmtree(self.path / WORK / point.id, ignore_errors=True)
                run_one(self._bed, point, self.path, keep_captures=False)
        return load_point(place)

    def judged(self, point: Point) -> PointVerdict:
        """The point's verdict by all its expectations; runs the points that it is compared with, too."""
        expectations = [e for e in self.plan.expectations if e.bounds.given and matching(e, [point])]
        every = [e for e in expectations if e.quantifier == "every"]
        others = self._others(every, [point]) if self.result(point).verdict == "pass" else []
        points, _ = self._evaluated([point, *others], every)
        return points[0]

    def claimed(self, expectation: Expectation) -> ExpectationVerdict:
        """The verdict of an expectation over its points, which are run if they have not been."""
        points = matching(expectation, self.plan.points)
        points += [point for point in self._others([expectation], points) if point not in points]
        return self._evaluated(points, [expectation])[1][0]

    def _evaluated(
        self, points: Sequence[Point], expectations: Sequence[Expectation]
    ) -> tuple[list[PointVerdict], list[ExpectationVerdict]]:
        part = replace(self.plan, points=tuple(points), expectations=tuple(expectations))
        return evaluate(part, {point.id: self.result(point).measured for point in points})

    def _others(self, expectations: Iterable[Expectation], points: Sequence[Point]) -> list[Point]:
        """The points that these are compared with."""
        there = {(point.levels, point.repeat): point for point in self.plan.points}
        others = {}
        for expectation in expectations:
            for point in points if expectation.bounds.than else ():
                other = there[counterpart(point.levels, expectation.bounds.than), point.repeat]
                others[other.id] = other
        return list(others.values())

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """A lock between processes for this point."""
        (self.path / WORK).mkdir(exist_ok=True)
        with (self.path / WORK / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
