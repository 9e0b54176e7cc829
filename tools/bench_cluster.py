# SPDX-License-Identifier: Apache-2.0
"""Points a minute on a Dask cluster: two workers over one, and beside local processes; and what many points cost."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.execution.pool import LocalPool, Pool
from testctl.plan import Point, load_plan
from testctl.testbeds.lab import LabTestbed
from testctl.testbeds.point_spec import spec_of
from testctl.testbeds.ready import ReadyTestbed
from testctl_cluster import ClusterPool

from plugins.cluster.tests.dask import dask

SHORT = """
about: a point that is mostly booting and writing
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, cc, cubic]
  - [switch:receiver, rate, 100mbit]
  - [switch:receiver, buffer, 100kB]
  - [switch, delay, 1ms]
  - [bulk, duration, {duration}]
repeat: {repeat}
"""
POINTS = 16
ROUNDS = 3
MANY = 10_000
QUIET = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false", "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms"}
"""As docs/cluster.md has it for workers that share processors."""


@contextmanager
def _cluster(where: Path, workers: int) -> Iterator[Pool]:
    with tempfile.TemporaryDirectory(dir=where) as own, dask(Path(own), workers, **QUIET) as running:
        yield ClusterPool(running.address)


def _a_minute(pool: Pool, bed: ReadyTestbed, points: tuple[Point, ...], where: Path) -> float:
    run = Path(tempfile.mkdtemp(dir=where))
    (run / "points").mkdir()
    started = time.perf_counter()
    done = sum(1 for _ in pool.work(bed, iter(points), run, False))
    return 60 * done / (time.perf_counter() - started)


def cluster(where: Path) -> None:
    """Rounds are interleaved, so that a slow change of the machine affects all of them; the median is printed.

    Each round has a cluster of its own, already warm: one that waits beside it takes a tenth of a processor.
    """
    points = load_plan(SHORT.format(duration="300ms", repeat=POINTS)).points
    bed = LabTestbed.for_points(points)
    found: dict[str, list[float]] = {"one worker": [], "two workers": [], "two local processes": []}
    for _ in range(ROUNDS):
        turns: list[AbstractContextManager[Pool]] = [_cluster(where, 1), _cluster(where, 2), nullcontext(LocalPool(2))]
        for name, turn in zip(found, turns, strict=True):
            with turn as pool:
                _a_minute(pool, bed, points[:2], where)
                found[name].append(_a_minute(pool, bed, points, where))
    for name, rates in found.items():
        print(f"cluster, {name}: {sorted(rates)[ROUNDS // 2]:.1f} points a minute")
    for over, under in (("two workers", "one worker"), ("two workers", "two local processes")):
        ratios = sorted(a / b for a, b in zip(found[over], found[under], strict=True))
        print(f"cluster, {over} over {under}: {ratios[ROUNDS // 2]:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


@dataclass(frozen=True)
class Nothing:
    """A testbed that can't have any point: what is left is the handing out and the writing."""

    def code_key(self, point: Point) -> str:
        return "nothing"

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        return spec_of(point), Outcome(skip="nothing is run")


def many(where: Path) -> None:
    """Handing out MANY points: points a second, and by how much this process grew."""
    points = load_plan(SHORT.format(duration="1ms", repeat=MANY)).points
    before = _resident_kb()
    rate = _a_minute(LocalPool(len(os.sched_getaffinity(0))), Nothing(), points, where) / 60
    grown, most = (_resident_kb() - before) / 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"many, {MANY} points: {rate:.0f} points/s; the controller grew by {grown:.1f} MB, {most:.0f} MB at most")


def _resident_kb() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0])
