# SPDX-License-Identifier: Apache-2.0
"""A run that several processes share: each point once, and what a part of its points is enough for."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from testctl.plan import Plan, Point, load_plan
from testctl.plan.subset import subset
from testctl.pytest_plugin.lazy_run import SharedRun
from testctl.results import RunWriter
from testctl_agent.spec.errors import TestbedError

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno, bbr]]
  - [bulk, duration, 100ms]
expect:
  - {name: each, metric: saturation, min: 0.5}
  - {name: compared, metric: saturation, at_least: 1, than: {hosts.cc: reno}, when: {hosts.cc: cubic}}
  - {name: some, metric: saturation, min: 0.9, quantifier: some}
"""


@dataclass(frozen=True)
class BrokenBed:
    """Takes its time, leaves a line for every point it was asked to run, and breaks."""

    log: Path

    def code_key(self, point: Point) -> str:
        return "none"

    def run(self, point: Point, workdir: Path) -> NoReturn:
        with self.log.open("a") as log:
            log.write(f"{point.id}\n")
        time.sleep(0.2)
        raise TestbedError(f"nothing runs {point.id}")


def ask(path: Path, log: Path, gate: Any) -> None:
    plan = load_plan(PLAN)
    run = SharedRun(plan, path, lambda: BrokenBed(log))
    gate.wait()
    for point in plan.points:
        assert run.judged(point).verdict == "broken"


def test_each_point_is_run_once_whoever_asks(tmp_path: Path) -> None:
    writer = RunWriter.create_at(tmp_path / "run", need=0)
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(3)
    askers = [context.Process(target=ask, args=(writer.path, tmp_path / "log", gate)) for _ in range(3)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert [asker.exitcode for asker in askers] == [0, 0, 0]
    assert sorted((tmp_path / "log").read_text().split()) == sorted(point.id for point in load_plan(PLAN).points)


@pytest.mark.parametrize(
    ("there", "judged"),
    [
        ((0, 1, 2), ["each", "compared", "some"]),
        ((0, 1), ["each", "compared"]),
        ((0, 2), ["each"]),
        ((1,), ["each", "compared"]),
    ],
)
def test_a_part_of_the_points_judges_what_it_can(there: tuple[int, ...], judged: list[str]) -> None:
    """cubic is compared with reno; some point of all is known when all were run."""
    plan: Plan = load_plan(PLAN)
    found = subset(plan, [plan.points[index].id for index in there])
    assert [point.id for point in found.points] == [plan.points[index].id for index in there]
    assert [expectation.name for expectation in found.expectations] == judged
