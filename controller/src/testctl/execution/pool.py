# SPDX-License-Identifier: Apache-2.0
"""Pools of workers for the points of a plan: the interface, and local processes."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system.entry_points import Group

from testctl.execution.point import run_one
from testctl.plan import Point
from testctl.system.worker_pool import kill_workers, workers
from testctl.testbeds.ready import ReadyTestbed

Done = tuple[Point, str, float]
"""A point whose directory is in the run, its verdict so far, and the wall seconds that it took."""
Finished = Generator[Done, None, None]


class Pool(Protocol):
    """Interface of a pool of workers that run several points at once."""

    def work(self, testbed: ReadyTestbed, points: Iterator[Point], run: Path, keep_captures: bool) -> Finished:
        """Takes a point whenever a slot is free, so that only a few are in progress, however large the plan is.

        Closed before its end, it stops those that it can.  Raises TestbedError when it can't go on.
        """


POOLS = Group("testctl.pools", "pool", "open_pool", {"cluster": "testctl-cluster"})
"""Pools of other distributions: each module has open_pool(address: str, *, insecure: bool) -> Pool."""


@dataclass(frozen=True)
class LocalPool:
    """Processes of this machine, `jobs` at once.

    kept  processes for several plans, one after the other, from workers(jobs); None: started for each
    """

    jobs: int
    kept: ProcessPoolExecutor | None = None

    def work(self, testbed: ReadyTestbed, points: Iterator[Point], run: Path, keep_captures: bool) -> Finished:
        with _killed_after_errors(self.kept) if self.kept else workers(self.jobs) as pool:
            running: dict[Future[tuple[str, float]], Point] = {}
            while True:
                for point in islice(points, self.jobs - len(running)):
                    running[pool.submit(run_one, testbed, point, run, keep_captures)] = point
                if not running:
                    return
                for future in wait_for(running, return_when=FIRST_COMPLETED).done:
                    point = running.pop(future)
                    try:
                        verdict, wall_s = future.result()
                    except BrokenProcessPool as error:
                        why = "its worker was killed from outside (out of memory?)"
                        raise TestbedError(f"point {point.id}: {why}") from error
                    yield point, verdict, wall_s


@contextmanager
def _killed_after_errors(pool: ProcessPoolExecutor) -> Iterator[ProcessPoolExecutor]:
    try:
        yield pool
    except BaseException:
        kill_workers(pool)
        raise
