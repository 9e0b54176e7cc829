# SPDX-License-Identifier: Apache-2.0
"""Runs parts of a case in the lab, each point once, and determines whether the failure persists."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from testctl_agent.spec.errors import PlanError, TestbedError, TestctlError

from testctl.execution.assess import analysis_keys
from testctl.execution.point import measure
from testctl.plan import Measured, Point
from testctl.plan.load import TEXT_NAME
from testctl.results import layout, load_point, write_point
from testctl.results.reuse import as_measured
from testctl.shrink.case import Candidate, Case, Tuples, candidate, verdict_of
from testctl.testbeds.ready import ReadyTestbed

CANDIDATES = "candidates"
"""Subdirectory of the search: its points, without their packets."""
Tried = tuple[Measured, float]
"""The measurement of a point, and its wall seconds."""
Answer = Literal["stays", "goes", "unclear"]


@dataclass(frozen=True)
class Trial:
    """The outcome of a trial of these tuples.

    answer  stays; goes; unclear: they can't be run, or not be judged
    words   the message of the expectation, or of the refusal
    ran     how many points were run for it: none where all were known
    """

    tuples: Tuples
    answer: Answer
    words: str
    ran: int = 0
    wall_s: float = 0.0

    @property
    def stays(self) -> bool:
        return self.answer == "stays"


@dataclass
class Trials:
    """Every trial so far.

    testbed_for  creates the testbed for some points
    notify  is called after every trial
    most  runs of points that may be made; then SpentError
    """

    case: Case
    directory: Path
    pool: ProcessPoolExecutor
    testbed_for: Callable[[Sequence[Point]], ReadyTestbed]
    notify: Callable[[Trial], None] = lambda trial: None
    most: int = 1000
    runs: int = 0
    made: dict[frozenset[tuple[str, str, str]], Trial] = field(default_factory=dict)
    known: dict[str, Measured] = field(default_factory=dict)

    def __call__(self, batch: Sequence[Tuples]) -> list[Trial]:
        """Try them in parallel; outcomes are in the order given."""
        fresh = {frozenset(tuples): tuples for tuples in batch if frozenset(tuples) not in self.made}
        started = {key: self._start(tuples) for key, tuples in fresh.items()}
        for key, tuples in fresh.items():
            trial = self._ended(tuples, started[key])
            self.made[key] = trial
            self.notify(trial)
        return [self.made[frozenset(tuples)] for tuples in batch]

    def _start(self, tuples: Tuples) -> tuple[Candidate, dict[str, Future[Tried]]] | TestctlError:
        try:
            trial = candidate(self.case, tuples)
            bed = self.testbed_for(trial.points)
        except (PlanError, TestbedError) as error:
            return error
        waiting: dict[str, Future[Tried]] = {}
        for point in trial.points:
            if point.id in self.known:
                continue
            there = self._finished(point, bed.code_key(point))
            if there is not None:
                self.known[point.id] = there
            elif self.runs >= self.most:
                raise SpentError(f"--max-runs {self.most}: all were made")
            else:
                self.runs += 1
                waiting[point.id] = self.pool.submit(try_point, bed, point, self.directory / CANDIDATES)
        return trial, waiting

    def _ended(self, tuples: Tuples, started: tuple[Candidate, dict[str, Future[Tried]]] | TestctlError) -> Trial:
        if isinstance(started, TestctlError):
            return Trial(tuples, "unclear", str(started).removeprefix(f"{TEXT_NAME}: "))
        trial, waiting = started
        wall_s = 0.0
        for point_id, future in waiting.items():
            try:
                self.known[point_id], took_s = future.result()
                wall_s += took_s
            except BrokenProcessPool as error:
                raise TestbedError(f"point {point_id}: its worker was killed from outside (out of memory?)") from error
        verdict, reason = verdict_of(self.case, trial, self.known)
        answer: Answer = "unclear"
        if verdict in ("pass", "fail"):
            answer = "stays" if verdict == self.case.wanted else "goes"
        return Trial(tuples, answer, reason, len(waiting), wall_s)

    def _finished(self, point: Point, code_key: str) -> Measured | None:
        """The unaltered point of the run or an earlier search in this directory, if the current code made it."""
        for place in (self.case.run.path, self.directory / CANDIDATES):
            path = layout.point_dir(place, point.id)
            if not (path / layout.VERDICT).exists():
                continue
            if as_measured(path, code_key, analysis_keys(), point.conditions):
                return load_point(path).measured
        return None


class SpentError(TestctlError):
    """The limit of runs is reached."""


def try_point(bed: ReadyTestbed, point: Point, directory: Path) -> Tried:
    """Run a point and keep the data for verdicts, without its packets."""
    work = directory / ".work" / point.id
    shutil.rmtree(work, ignore_errors=True)
    result = measure(bed, point, work, keep_captures=False)
    shutil.rmtree(work, ignore_errors=True)
    if result.verdict == "pass" and not layout.point_dir(directory, point.id).exists():
        write_point(directory, replace(result, records=None, stalls=None))
    return result.measured, result.wall_s
