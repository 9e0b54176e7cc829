# SPDX-License-Identifier: Apache-2.0
"""A controller that has run many points in labs has no more than after the first: nothing of a point stays.

TESTCTL_LEAK_POINTS=200 for so many; a point takes a second or two.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console
from testctl.execution.options import Options
from testctl.execution.run import run_plan
from testctl.plan import load_plan
from testctl.report import Progress
from testctl.results import layout
from testctl.system import worker_pool
from testctl.testbeds.lab import LabTestbed

POINTS = int(os.environ.get("TESTCTL_LEAK_POINTS", "6"))
WARM = 3
"""Points after which everything is there that is kept from point to point: workers, caches, compiled programs."""
PLAN = f"""
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, cc, cubic]
  - [switch:receiver, rate, 10mbit]
  - [bulk, duration, 20ms]
repeat: {POINTS}
"""


def held(home: Path) -> dict[str, int]:
    """What the controller and its workers have: of each kind, how many."""
    mine = psutil.Process()
    everybody = [mine, *mine.children(recursive=True)]
    return {
        "processes": len(everybody),
        "descriptors": sum(one.num_fds() for one in everybody),
        "threads": sum(one.num_threads() for one in everybody),
        "temporary files": sum(1 for _ in home.rglob("*")),
        "shared memory": len(list(worker_pool.SEMAPHORES.glob(f"sem.testctl-*-{os.getpid()}-*"))),
    }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for temporary files that nobody else uses."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield place
    monkeypatch.undo()
    tempfile.tempdir = None


class Counting(Progress):
    """Counts when a point is done and the next has not begun: with one worker, what is there then is kept."""

    def __init__(self, home: Path) -> None:
        super().__init__(POINTS, Console(quiet=True))
        self._home = home
        self.counts: list[dict[str, int]] = []

    def done(self, *words: Any, **more: Any) -> None:
        super().done(*words, **more)
        self.counts.append(held(self._home))


@pytest.mark.lab
@pytest.mark.timeout(120 + 20 * POINTS)
def test_nothing_of_a_point_stays(tmp_path: Path, home: Path) -> None:
    plan = load_plan(PLAN, metrics={})
    counting = Counting(home)
    before = held(home)
    run = run_plan(plan, LabTestbed.for_points(plan.points), Options(tmp_path, tmp_path / "run"), counting)
    after = held(home)
    assert [point.verdict for point in run.points] == ["pass"] * POINTS
    assert len(counting.counts) == POINTS
    warm, *rest = counting.counts[WARM - 1 :]
    for name, count in warm.items():
        assert min(one[name] for one in rest[-WARM:]) <= count, (name, [one[name] for one in counting.counts])
    assert after["temporary files"] == 0
    assert after["processes"] <= before["processes"] + 1  # Python's own, which unlinks semaphores at its end
    assert after["shared memory"] <= before["shared memory"]
    assert not list(tmp_path.glob(f"*{layout.IN_PROGRESS}"))
    assert not (run.path / ".work").exists()
