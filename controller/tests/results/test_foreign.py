# SPDX-License-Identifier: Apache-2.0
"""A run from elsewhere is read as data: no name in it leads out of it, and what is not of its form is refused."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testctl.report import write_report
from testctl.results import Run, load_run
from testctl_agent.spec.errors import PlanError, TestctlError

from controller.tests.serve.conftest import make_run
from controller.tests.support.odd_json import mutated

Change = Callable[[Path], Any]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "results", 1)


def changed(path: Path, **entries: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def test_a_points_name_is_its_directory(run: Path, tmp_path: Path) -> None:
    changed(run / "points" / "loss" / "verdict.json", id="../../../../stolen")
    with pytest.raises(PlanError, match=r"want the verdict of point loss; got 'fail' of "):
        write_report(run)
    assert not list(tmp_path.glob("**/stolen*"))


@pytest.mark.parametrize("place", ["points/x", "points/loss/records.json", "points/loss/captures/a.pcap"])
def test_links_and_devices(run: Path, tmp_path: Path, place: str) -> None:
    path = run / place
    path.parent.mkdir(exist_ok=True)
    for make in (lambda: path.symlink_to(tmp_path), lambda: os.mkfifo(path)):
        path.unlink(missing_ok=True)
        make()
        with pytest.raises(PlanError, match=r"want a (file or a )?directory; got a link or "):
            load_run(run)


@pytest.mark.parametrize("name", ["summary.json", "plan.yaml", "topology.yaml", "traces.json", "versions.json"])
def test_its_own_files_are_files(run: Path, tmp_path: Path, name: str) -> None:
    """The report has the plan; a pipe would be waited for."""
    (tmp_path / "secret").write_text("{}")
    path = run / name
    for make in (lambda: path.symlink_to(tmp_path / "secret"), lambda: os.mkfifo(path), path.mkdir):
        path.unlink(missing_ok=True)
        make()
        with pytest.raises(PlanError, match=f"{name}: want a file; got a link or something else"):
            load_run(run)


def test_figures_are_drawn_nowhere_else(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PlanError, match="want a directory; got a link"):
        write_report(run)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_words_can_be_shown(run: Path) -> None:
    changed(run / "points" / "loss" / "verdict.json", reason="\x1b]0;mine\x07 \x9b2J")
    assert load_run(run).point("loss").reason == "�]0;mine� �2J"


@pytest.mark.parametrize("file", ["summary.json", "points/loss/verdict.json", "points/loss/point.json",
                                  "points/loss/metrics.json"])  # fmt: skip
def test_a_file_fits_or_is_refused(run: Path, file: str) -> None:
    path, draw = run / file, random.Random(file)
    whole = path.read_text()
    refused = 0
    for number in range(60):
        path.write_text("[" * 100_000 if number == 0 else json.dumps(mutated(json.loads(whole), draw)))
        try:
            looked_at(load_run(run))
        except TestctlError:
            refused += 1
    assert 0 < refused < 60


def looked_at(run: Run) -> None:
    """As `testctl show` does."""
    from io import StringIO

    from rich.console import Console
    from testctl.report import print_summary

    shown = StringIO()
    print_summary(run, Console(file=shown, force_terminal=False))
    assert "\x1b" not in shown.getvalue()
