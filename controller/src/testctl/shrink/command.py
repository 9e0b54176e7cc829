# SPDX-License-Identifier: Apache-2.0
"""Runs the search for the command: its directory, its workers, and partial results."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.plan import Point
from testctl.results import layout
from testctl.results.atomic import naming_path
from testctl.results.reader import read_json
from testctl.shrink.case import Case
from testctl.shrink.search import SearchResult, search
from testctl.shrink.trials import CANDIDATES, SpentError, Trial, Trials
from testctl.shrink.write import REPORT, write
from testctl.system.worker_pool import kill_workers, workers
from testctl.testbeds.choose import find
from testctl.testbeds.ready import ReadyTestbed
from testctl.testbeds.testbed import Request

MIN_WALL_S = 45.0
TIMES_WALL = 5.0
"""Time that a point may take in addition to its time in the run."""


@dataclass(frozen=True)
class Ended:
    """The result of a search: `why` it ended early, "" if it did not."""

    found: SearchResult
    trials: Trials
    plan: Path
    why: str = ""
    interrupted: bool = False


def run_search(
    case: Case, directory: Path, *, jobs: int, probes: int, most: int, told_of: Callable[[Trial], None]
) -> Ended:
    """Search, and write the result into `directory`, also after an interruption or at the limit of runs.

    Raises PlanError when the directory holds something else, or the point does not fail again.
    """
    prepare(case, directory)
    result = SearchResult()
    why, interrupted = "", False
    with workers(jobs) as pool:
        trials = Trials(case, directory, pool, _beds(case), told_of, most)
        try:
            search(case, trials, result, probes, jobs)
        except SpentError as error:
            why = str(error)
            pool.shutdown(cancel_futures=True)
        except BaseException as error:
            kill_workers(pool)
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
            why, interrupted = "interrupted", True
    return Ended(result, trials, write(case, result, trials, directory), why, interrupted)


def prepare(case: Case, directory: Path) -> None:
    """Make the directory, or reuse that of an earlier search for this point."""
    report = directory / REPORT
    if directory.exists() and not directory.is_dir():
        raise PlanError(f"{directory}: want a directory for the search; got a file")
    if report.exists():
        report_json = read_json(report)
        if (report_json.get("run"), report_json.get("point")) != (case.run.name, case.point.id):
            raise PlanError(
                f"{directory}: is of a search of point {report_json.get('point')} of {report_json.get('run')}"
            )
    elif directory.exists() and any(item.name != CANDIDATES for item in directory.iterdir()):
        raise PlanError(f"{directory}: want a new directory, or one of an earlier search; got one with something in it")
    shutil.rmtree(directory / CANDIDATES / ".work", ignore_errors=True)  # remains of a killed search
    with naming_path(directory, "nothing was run"):
        (directory / CANDIDATES / layout.POINTS).mkdir(parents=True, exist_ok=True)


def _beds(case: Case) -> Callable[[Sequence[Point]], ReadyTestbed]:
    """Testbeds with a lower time limit than a run's: a point without any rate would use all of it."""
    limit_s = max(MIN_WALL_S, TIMES_WALL * case.found.wall_s)
    return lambda points: find(case.plan.testbed).ready(points, Request(limit_s, commands=case.commands))
