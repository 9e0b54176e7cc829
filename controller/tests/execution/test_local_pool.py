# SPDX-License-Identifier: Apache-2.0
"""Local processes get points a few at a time, and what has come of the others is on disk alone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from testctl.execution.pool import LocalPool
from testctl.plan import Point, load_plan
from testctl.system.worker_pool import workers
from testctl_agent.spec.errors import TestbedError

from controller.tests.execution.testbeds import Bulky, Hashing
from controller.tests.support.synthetic import bulk, write_point

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples: [[hosts, cc, cubic], [bulk, duration, 1s]]
repeat: %d
"""
JOBS = 2
MANY = 1000


def test_memory_does_not_grow_with_the_points(tmp_path: Path) -> None:
    """tools/bench.py many: ten thousand."""
    points = load_plan(PLAN % MANY).points
    (tmp_path / "mark").mkdir()
    (tmp_path / "points").mkdir()
    taken: list[int] = []

    def given() -> Iterator[Point]:
        for number, point in enumerate(points):
            taken.append(number)
            yield point

    peaks, most = [], 0
    tracemalloc.start()
    try:
        for done, _ in enumerate(LocalPool(JOBS).work(Hashing(tmp_path / "mark"), given(), tmp_path, False), 1):
            most = max(most, len(taken) - done)
            if done % (MANY // 4) == 0:
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.reset_peak()
    finally:
        tracemalloc.stop()
    assert len(taken) == MANY
    assert most < JOBS + 1
    assert len(list((tmp_path / "points").iterdir())) == MANY
    assert peaks[3] < peaks[1] + 100_000, "bytes; a hundred a point would be half of it"


def test_a_worker_is_as_large_after_six_points_of_many_packets_as_after_two(tmp_path: Path) -> None:
    made, mark = tmp_path / "made", tmp_path / "mark"
    write_point(made, bulk(100_000))
    (tmp_path / "points").mkdir()
    points = load_plan(PLAN % 7).points
    ended = [verdict for _, verdict, _ in LocalPool(1).work(Bulky(made, mark), iter(points), tmp_path, False)]
    assert ended == ["pass"] * 7
    resident = [int(line) for line in mark.read_text().split()]
    assert resident[-1] < 1.2 * resident[2]


def test_points_that_are_under_way_end_with_the_generator(tmp_path: Path) -> None:
    points = load_plan(PLAN % 20).points
    (tmp_path / "mark").mkdir()
    (tmp_path / "points").mkdir()
    work = LocalPool(JOBS).work(Hashing(tmp_path / "mark", pause_s=0.2), iter(points), tmp_path, False)
    next(work)
    work.close()
    assert 1 <= len(list((tmp_path / "mark").iterdir())) <= 2 * JOBS


def test_a_worker_that_is_killed_from_outside_is_told(tmp_path: Path) -> None:
    points = load_plan(PLAN % 3).points
    (tmp_path / "mark").mkdir()
    (tmp_path / "points").mkdir()
    with pytest.raises(TestbedError, match="its worker was killed from outside"):
        list(LocalPool(1).work(Hashing(tmp_path / "mark", deadly=points[1].id), iter(points), tmp_path, False))


def test_workers_that_are_kept_work_on_several_plans_and_end_with_an_error(tmp_path: Path) -> None:
    points = load_plan(PLAN % 3).points
    (tmp_path / "mark").mkdir()
    for run in ("first", "second", "third"):
        (tmp_path / run / "points").mkdir(parents=True)
    with workers(JOBS) as kept:
        pool, seen = LocalPool(JOBS, kept), []
        for run in ("first", "second"):
            assert len(list(pool.work(Hashing(tmp_path / "mark"), iter(points), tmp_path / run, False))) == 3
            seen.append(list(kept._processes.values()))
        assert [one.pid for one in seen[0]] == [one.pid for one in seen[1]]
        deadly = Hashing(tmp_path / "third", deadly=points[1].id)
        with pytest.raises(TestbedError, match="its worker was killed from outside"):
            list(pool.work(deadly, iter(points), tmp_path / "third", False))
        assert not any(one.is_alive() for one in seen[0])
