# SPDX-License-Identifier: Apache-2.0
"""The end of a run of many points reads what each point wrote once, and point.json and outcome.json not at all.

TESTCTL_OPENS_POINTS says of how many points (300; a multiple of 10).
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from testctl.execution.assess import analysis_keys
from testctl.execution.finish import complete
from testctl.execution.options import Options
from testctl.execution.pool import Finished
from testctl.execution.run import run_plan
from testctl.metrics import metric_names
from testctl.plan import Plan, Point, load_plan
from testctl.report import Progress
from testctl.results import PointResult, RunWriter, write_point
from testctl.testbeds.ready import ReadyTestbed

COUNT = int(os.environ.get("TESTCTL_OPENS_POINTS", "300"))
FAILING = len(range(0, COUNT, 3))
"""Every third is slow."""
PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [bulk, duration, [10ms, 20ms, 30ms, 40ms, 50ms]]
repeat: REPEAT
expect:
  - {name: fast, metric: throughput_bps, min: 1gbit}
  - {name: as reno, metric: throughput_bps, at_least: 0.1, than: {hosts.cc: reno}, when: {hosts.cc: cubic}}
"""
_COUNTS: list[Counter[str]] = []


def _hook(event: str, given: tuple[Any, ...]) -> None:
    if event == "open" and _COUNTS and isinstance(given[0], str):
        _COUNTS[-1][given[0]] += 1


sys.addaudithook(_hook)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How often each path is opened; what is opened within another `counted` is that one's."""
    _COUNTS.append(Counter())
    try:
        yield _COUNTS[-1]
    finally:
        _COUNTS.pop()


class Nowhere:
    """A testbed that runs nothing."""

    def code_key(self, point: Point) -> str:
        return "k"

    def run(self, point: Point, workdir: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        raise AssertionError


class Written:
    """A pool whose points are written as a worker writes them, which is not counted; every third is slow."""

    def work(self, testbed: ReadyTestbed, points: Iterator[Point], run: Path, keep_captures: bool) -> Finished:
        for number, point in enumerate(points):
            result = PointResult(
                point=point.to_json(),
                verdict="pass",
                outcome={"kernel": "6.12.1", "entities": {"sender": {"before": {"cc": "cubic"}, "after": {}}}},
                metrics={"bulk": {"throughput_bps": 2e9 if number % 3 else 5e8}},
                code_key="k",
                analysis=analysis_keys(),
            )
            with counted():
                write_point(run, result)
            yield point, "pass", 0.1


def plan() -> Plan:
    found = load_plan(PLAN.replace("REPEAT", str(COUNT // 10)), metrics=metric_names())
    assert len(found.points) == COUNT
    return found


def of_points(count: Counter[str]) -> tuple[set[str], set[int], int]:
    """(the names of the points' files that were opened, how often, how many)."""
    found = {Path(path): times for path, times in count.items() if "/points/" in path and path.endswith(".json")}
    return {path.name for path in found}, set(found.values()), len(found)


def test_a_run_reads_no_file_of_a_point_twice(tmp_path: Path) -> None:
    progress = Progress(COUNT, Console(quiet=True))
    with counted() as count:
        run = run_plan(plan(), Nowhere(), Options(tmp_path, tmp_path / "run"), progress, pool=Written())
    assert of_points(count) == ({"verdict.json", "metrics.json"}, {1}, 2 * COUNT)
    assert run.summary["counts"]["fail"] == FAILING
    assert {point.path.parent for point in run.points} == {tmp_path / "run" / "points"}
    assert run.points[0].point["id"] == run.points[0].id, "read when it is asked for, from the complete run"


def test_the_end_of_a_run_that_others_began_reads_each_file_once(tmp_path: Path) -> None:
    """As pytest's plugin and replay end one."""
    writer = RunWriter.create_at(tmp_path / "run", need=0)
    assert sum(1 for _ in Written().work(Nowhere(), iter(plan().points), writer.path, keep_captures=False)) == COUNT
    with counted() as count:
        run = complete(plan(), writer, Options(tmp_path), datetime.now(UTC), 1.0)
    assert of_points(count) == ({"verdict.json", "metrics.json", "point.json"}, {1}, 3 * COUNT)
    assert run.summary["counts"]["fail"] == FAILING


def test_a_resumed_run_reads_what_it_takes_once(tmp_path: Path) -> None:
    """Beside the check of every file of a point by its sha256, before it is in the run."""
    writer = RunWriter.create_at(tmp_path / "one", need=0)
    assert sum(1 for _ in Written().work(Nowhere(), iter(plan().points), writer.path, keep_captures=False)) == COUNT
    progress = Progress(COUNT, Console(quiet=True))
    with counted() as count:
        run = run_plan(plan(), Nowhere(), Options(tmp_path, tmp_path / "two", resume=True), progress, pool=Written())
    assert run.summary["resumed"]["reused"] == {"one": COUNT}
    mine = Counter({path: times for path, times in count.items() if "/two.in-progress/points/." not in path})
    assert of_points(mine) == ({"verdict.json", "metrics.json"}, {1}, 3 * COUNT)
