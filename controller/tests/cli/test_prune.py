# SPDX-License-Identifier: Apache-2.0
"""testctl prune: what takes space, which runs would go, and what never does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from testctl.cli import prune
from testctl.results import layout

Call = Callable[..., tuple[int, str, str]]
NOW = datetime.now(UTC)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    found = tmp_path / "results"
    found.mkdir()
    return found


def made(results: Path, days: int, plan: str = "p", *, night: bool = False, whole: bool = True) -> Path:
    """A run that began so many days ago."""
    began = NOW - timedelta(days=days)
    run = results / (layout.run_name(plan, began) + ("" if whole else layout.IN_PROGRESS))
    (run / "points" / "a").mkdir(parents=True)
    (run / "points" / "a" / "packets.parquet").write_bytes(b"x" * 2_000_000)
    (run / "plan.yaml").write_text("about: a\n", encoding="utf-8")
    if whole:
        summary = {"plan": plan, "started": began.isoformat(), "counts": {"pass": 1, "fail": 2}}
        summary |= {"nightly": {"since": None}} if night else {}
        (run / "summary.json").write_text(json.dumps(summary | {"points": []}), encoding="utf-8")
    return run


def there(results: Path) -> set[str]:
    return {path.name for path in results.iterdir()}


def test_without_a_limit_it_lists_and_removes_nothing(results: Path, command: Call) -> None:
    run = made(results, 3)
    code, out, _ = command("prune", "--results", str(results))
    assert code == 0
    (line,) = [line for line in out.splitlines() if run.name in line]
    assert "2.0 MB" in line
    assert "3 days" in line
    assert "1 pass, 2 fail" in line
    assert "--keep" in out
    assert there(results) == {run.name}


def test_the_newest_of_each_plan_stay_and_only_yes_removes(results: Path, command: Call) -> None:
    old, middle, new, other = made(results, 9), made(results, 5), made(results, 1), made(results, 20, "q")
    going = made(results, 0, whole=False)
    words = ("prune", "--results", str(results), "--keep", "2")
    _, out, _ = command(*words)
    assert [line.split()[0] for line in out.splitlines() if "would be removed" in line and line[0] == "2"] == [old.name]
    assert "would be removed: 1 run, 2.0 MB; with --yes they are" in out
    assert len(there(results)) == 5
    _, out, _ = command(*words, "--yes")
    assert "removed 1 run, 2.0 MB" in out
    assert there(results) == {middle.name, new.name, other.name, going.name}


def test_both_limits_must_be_met(results: Path, command: Call) -> None:
    made(results, 40)
    young, new = made(results, 5), made(results, 1)
    command("prune", "--results", str(results), "--keep", "1", "--older", "30d", "--yes")
    assert there(results) == {young.name, new.name}


def test_what_is_in_progress_linked_or_the_last_night_stays(results: Path, command: Call) -> None:
    going = made(results, 90, whole=False)
    linked, also, gone, night, before = (
        made(results, 80), made(results, 75), made(results, 70), made(results, 60, night=True),
        made(results, 65, night=True),
    )  # fmt: skip
    (results / "latest").symlink_to(linked.name)
    (results / "good").symlink_to(also / "points" / "a")
    command("prune", "--results", str(results), "--older", "1d", "--yes")
    assert there(results) == {going.name, linked.name, also.name, night.name, "latest", "good"}
    assert not {gone.name, before.name} & there(results)


def test_what_is_no_run_is_left_alone(results: Path, command: Call, tmp_path: Path) -> None:
    (results / "20250101T000000Z-p-aa").mkdir()
    (results / "notes").mkdir()
    (results / "notes" / "points").mkdir()
    elsewhere = made(tmp_path, 90)
    (results / "20250101T000000Z-link").symlink_to(elsewhere)
    code, out, _ = command("prune", "--results", str(results), "--older", "1d", "--yes")
    assert code == 0
    assert "20250101T000000Z-p-aa, notes" in out
    assert there(results) == {"20250101T000000Z-p-aa", "notes", "20250101T000000Z-link"}
    assert elsewhere.is_dir()


@pytest.mark.parametrize("odd", ["missing", "notes", "latest", "going", "linked", "night"])
def test_a_run_by_name_must_be_a_complete_one_that_nothing_names(results: Path, command: Call, odd: str) -> None:
    (results / "notes").mkdir()
    linked, going, night = made(results, 3), made(results, 2, whole=False), made(results, 1, night=True)
    (results / "latest").symlink_to(linked.name)
    named = {
        "night": night.name,
        "missing": "missing",
        "notes": "notes",
        "latest": "latest",
        "going": going.name,
        "linked": linked.name,
    }
    before = there(results)
    code, _, err = command("prune", str(results / named[odd]), "--yes")
    assert code == 2
    assert named[odd] in err
    assert there(results) == before


def test_a_run_by_name_is_removed(results: Path, command: Call) -> None:
    first, second = made(results, 3), made(results, 2)
    command("prune", str(first), "--yes")
    assert there(results) == {second.name}


def test_the_run_in_which_the_command_is_given(results: Path, command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made(results, 3))
    code, out, err = command("prune", ".", "--yes")
    assert (code, err, there(results)) == (0, "", set())
    assert "removed 1 run, 2.0 MB" in out


def test_what_an_interrupted_one_left_goes(results: Path, command: Call) -> None:
    run = made(results, 3)
    (results / f"{prune.REMOVED}{run.name}" / "points").mkdir(parents=True)
    command("prune", "--results", str(results))
    assert len(there(results)) == 2
    command("prune", "--results", str(results), "--yes")
    assert there(results) == {run.name}


def test_a_file_that_another_run_has_too_frees_nothing(results: Path, command: Call) -> None:
    first, second = made(results, 3), made(results, 2)
    shared = second / "points" / "a" / "packets.parquet"
    shared.unlink()
    os.link(first / "points" / "a" / "packets.parquet", shared)
    _, out, _ = command("prune", "--results", str(results), "--keep", "1")
    assert "would be removed: 1 run, 0.0 MB" in out


def test_files_that_a_run_in_progress_removes_meanwhile(results: Path) -> None:
    points = made(results, 0, whole=False) / "points" / "a"
    (points / "second").touch()
    found = prune._files(points)
    next(found)
    for file in points.iterdir():
        file.unlink()
    assert list(found) == []


def test_a_time_that_is_too_long_is_refused(results: Path, command: Call) -> None:
    made(results, 3)
    code, _, err = command("prune", "--results", str(results), "--older", "800000d")
    assert code == 2
    assert "--older: want a time such as 12h, 30d or 8w" in err


def test_a_directory_that_is_a_run_itself_is_refused(results: Path, command: Call) -> None:
    run = made(results, 3)
    code, _, err = command("prune", "--results", str(run), "--older", "1d", "--yes")
    assert code == 2
    assert "want a directory of runs" in err
    assert command("prune", "--results", str(results / "none"))[0] == 2


def test_built_kernels_are_listed(results: Path, command: Call) -> None:
    from testctl.lab import kernel

    directory = kernel.name_file("mine").parent / "mine-0123456789abcdef"
    directory.mkdir(parents=True)
    (directory / "linux").write_bytes(b"x" * 3_000_000)
    (directory / "release").write_text("6.12.3\n", encoding="ascii")
    _, out, _ = command("prune", "--results", str(results))
    assert "1 built kernel takes 3.0 MB" in out
    assert "testctl lab rm --unused" in out
