# SPDX-License-Identifier: Apache-2.0
"""What was read of a run is kept while the run is the same, and no longer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from testctl.serve import runs as serving
from testctl.serve.plans import Plans
from testctl.serve.runs import Runs

from controller.tests.serve.conftest import make_run


def test_the_page_of_a_run_in_progress_has_each_point_that_ended(tmp_path: Path) -> None:
    """Also where another view was asked for at each point before, and what that one read is gone."""
    run = make_run(tmp_path, 1, {"loss": "pass", "ack_owed": "pass", "delayed_ack": "pass"})
    (run / "summary.json").unlink()
    run = run.rename(tmp_path / f"{run.name}.in-progress")
    ended = [path.rename(tmp_path / path.name) for path in (run / "points").iterdir()]
    kept = Runs(tmp_path)
    assert kept.page(run.name)["points"] == []
    for count, path in enumerate(ended, 1):
        path.rename(run / "points" / path.name)
        if count % 2:
            assert len(kept.find(run.name).points) == count
        else:
            assert len(kept.page(run.name)["points"]) == count


def test_runs_of_a_plan_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path, 1, {"loss": "pass"})
    for day in range(2, 14):
        shutil.copytree(run, tmp_path / run.name.replace("20260101", f"202601{day:02}"))
    find, seen = serving._find, []

    def finding(path: Path) -> serving.Found:
        seen.append(path.name)
        return find(path)

    monkeypatch.setattr(serving, "_find", finding)
    plans = Plans(Runs(tmp_path))
    first = plans.page("two", "throughput_bps", "")
    assert plans.page("two", "throughput_bps", "") == first
    assert len(seen) == len(set(seen)) == len(first["runs"]) == 13
