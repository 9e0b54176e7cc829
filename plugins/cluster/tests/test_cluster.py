# SPDX-License-Identifier: Apache-2.0
"""Points on the workers of a real Dask scheduler: gathered, run again when a worker is lost, refused when unfit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from testctl.execution.options import Options
from testctl.execution.pool import LocalPool, Pool
from testctl.execution.run import run_plan
from testctl.plan import Plan, Point, load_plan
from testctl.report import Progress
from testctl.results import Run
from testctl_agent.spec.errors import TestbedError
from testctl_cluster import ClusterPool, pool
from testctl_cluster.worker import Parcel

from controller.tests.execution.testbeds import Hashing
from plugins.cluster.tests.dask import ROOT, Dask, dask

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples: [[hosts, cc, cubic], [bulk, duration, 1s]]
repeat: %d
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    with dask(tmp_path_factory.mktemp("dask"), workers=2) as found:
        yield found


def plan(points: int) -> Plan:
    return load_plan(PLAN % points)


def go(points: int, bed: Hashing, where: Path, name: str, at: Pool) -> Run:
    progress = Progress(points, Console(quiet=True))
    return run_plan(plan(points), bed, Options(where, where / name), progress, pool=at)


def bed(where: Path, **words: Any) -> Hashing:
    (where / "mark").mkdir(exist_ok=True)
    return Hashing(where / "mark", **words)


def files(run: Run) -> dict[str, bytes]:
    """What the points of a run hold, by name, without times."""
    found = {
        str(path.relative_to(run.path)): path.read_bytes() for path in run.path.glob("points/*/*") if path.is_file()
    }
    for name in [name for name in found if name.endswith("verdict.json")]:
        found[name] = json.dumps({**json.loads(found[name]), "wall_s": 0}).encode()
    return found


def test_what_comes_back_is_what_a_local_run_writes(tmp_path: Path, two: Dask) -> None:
    there = go(12, bed(tmp_path), tmp_path, "cluster", ClusterPool(two.address))
    local = go(12, bed(tmp_path), tmp_path, "local", LocalPool(2))
    assert len(there.points) == 12
    assert files(there) == files(local)
    assert there.digest == local.digest


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    points = plan(8).points
    with dask(tmp_path, workers=2) as cluster:
        deadly = bed(tmp_path, deadly=points[3].id)
        run = go(8, deadly, tmp_path, "run", ClusterPool(cluster.address))
        assert sorted(process.poll() is None for process in cluster.running) == [False, True, True]
    assert {point.verdict for point in run.points} == {"skip"}
    assert len(run.points) == 8
    assert deadly.starts(points[3]) == 2


def test_an_archive_that_went_with_its_worker_is_made_again(
    tmp_path: Path, two: Dask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restart of the worker between its task's end and the fetching."""
    real, lost = pool._Gathering._fetch, []

    def fetch(self: pool._Gathering, parcel: Parcel, point: Point) -> bool:
        if not lost or point.id == ever:
            lost.append(point.id)
            Path(parcel.path).unlink()
        return real(self, parcel, point)

    ever = ""
    monkeypatch.setattr(pool._Gathering, "_fetch", fetch)
    hashing, points = bed(tmp_path), plan(3).points
    run = go(3, hashing, tmp_path, "run", ClusterPool(two.address))
    assert {point.verdict for point in run.points} == {"skip"}
    assert {point.id: hashing.starts(point) for point in points} == {p.id: 1 + (p.id == lost[0]) for p in points}
    ever = points[1].id
    again = go(3, hashing, tmp_path, "again", ClusterPool(two.address))
    assert {p.id for p in again.points if p.verdict == "broken"} == {ever}
    assert again.point(ever).reason == "what it left on its worker could not be fetched, 5 times"


def test_few_points_are_under_way_however_many_there_are(tmp_path: Path, two: Dask) -> None:
    points, hashing, (run,) = plan(40).points, bed(tmp_path, pause_s=0.01), [tmp_path / "run"]
    (run / "points").mkdir(parents=True)
    taken = []

    def given() -> Iterator[Point]:
        for point in points:
            taken.append(point)
            yield point

    most = done = 0
    for _ in ClusterPool(two.address).work(hashing, given(), run, False):
        done += 1
        most = max(most, len(taken) - done)
    assert done == 40
    assert most <= 2 * pool.AHEAD + 1


def test_a_worker_of_other_code_or_without_the_kernel_is_named(tmp_path: Path, two: Dask) -> None:
    with pytest.raises(
        TestbedError, match=r"not every worker can run this\n  tcp://127\.0\.0\.1:\d+: kernel 6.12 is not"
    ):
        go(2, bed(tmp_path, lacks="kernel 6.12 is not there"), tmp_path, "run", ClusterPool(two.address))
    assert not list(tmp_path.glob("run*"))


def test_no_scheduler_and_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "CONNECT_S", 2)
    with pytest.raises(TestbedError, match=r"--cluster tcp://127\.0\.0\.1:1: want the address of a Dask scheduler"):
        go(2, bed(tmp_path), tmp_path, "run", ClusterPool("tcp://127.0.0.1:1"))
    with pytest.raises(TestbedError, match="--cluster nonsense://x: want the address of a Dask scheduler"):
        go(2, bed(tmp_path), tmp_path, "run", ClusterPool("nonsense://x", insecure=True))
    with dask(tmp_path, workers=0) as empty, pytest.raises(TestbedError, match="no worker there; start one"):
        go(2, bed(tmp_path), tmp_path, "run", ClusterPool(empty.address))


def other_code(where: Path) -> str:
    """A PYTHONPATH with the project's packages, one line of which is another."""
    for package in ("controller/src/testctl", "agents/src/testctl_agent"):
        name = package.rpartition("/")[2]
        shutil.copytree(ROOT / package, where / name, ignore=shutil.ignore_patterns("__pycache__"))
    with (where / "testctl" / "noise.py").open("a", encoding="utf-8") as file:
        file.write("\n# another line\n")
    return f"{where}:{ROOT}"


def test_a_worker_of_other_code_is_named_also_when_it_comes_late(tmp_path: Path) -> None:
    path = other_code(tmp_path / "other")
    (tmp_path / "points").mkdir()
    with dask(tmp_path, workers=1) as cluster:
        work = ClusterPool(cluster.address).work(bed(tmp_path, pause_s=0.3), iter(plan(200).points), tmp_path, False)
        next(work)
        cluster.worker(PYTHONPATH=path)
        with pytest.raises(TestbedError, match=r"worker tcp://127.*: point \w+: want code \w+; got \w+"):
            list(work)
        with pytest.raises(TestbedError, match=r"want testctl [\d.]+ \(code (\w+)\) on Python .*; got testctl .*code"):
            go(2, bed(tmp_path), tmp_path, "run", ClusterPool(cluster.address))


def test_a_worker_without_the_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "none" / "testctl").mkdir(parents=True)
    (tmp_path / "none" / "testctl" / "__init__.py").write_text('raise ImportError("not here")\n', encoding="utf-8")
    with dask(tmp_path, workers=0) as cluster:
        cluster.worker(PYTHONPATH=f"{tmp_path / 'none'}:{ROOT}")
        with pytest.raises(TestbedError, match=r"tcp://127.*: it can't import testctl: .*not here"):
            go(2, bed(tmp_path), tmp_path, "run", ClusterPool(cluster.address))


def test_the_last_worker_lost_ends_the_run_and_keeps_what_is_done(tmp_path: Path) -> None:
    with dask(tmp_path, workers=1) as cluster:
        deadly = bed(tmp_path, deadly=plan(6).points[3].id)
        with pytest.raises(TestbedError, match="no worker for 1 s; start some and --resume"):
            go(6, deadly, tmp_path, "run", ClusterPool(cluster.address, workerless_s=1))
    assert list(tmp_path.glob("run.in-progress/points/*/verdict.json"))
