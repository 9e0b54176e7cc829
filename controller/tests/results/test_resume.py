# SPDX-License-Identifier: Apache-2.0
"""`--resume` judges by the plan at hand, runs again what it can't trust, and says so."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from testctl.cli.exit_code import exit_code
from testctl.execution import finish, resume
from testctl.report import print_summary
from testctl.results import Run, load_run
from testctl.results.reader import load_points
from testctl.results.verdict_file import FORMAT
from testctl.results.work import WORK
from testctl.system import temporary
from testctl_agent.spec.errors import PlanError

from controller.tests.results.beds import FEW, MANY, SOME, Synthetic, go, plan


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A complete run in which one point failed its expectation; not to be changed."""
    return go(tmp_path_factory.mktemp("results"), wanted=SOME)[0]


@pytest.fixture
def results(tmp_path: Path, once: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a run of its own.  Further runs draw no report, which takes longer than all else."""
    shutil.copytree(once.path, tmp_path / once.name)
    monkeypatch.setattr(finish, "write_report", lambda *given, **more: None)
    return tmp_path


def verdicts(run: Run) -> dict[str, str]:
    return {str(point.tuples[0][2]): point.verdict for point in run.points}


def shown(run: Run) -> str:
    out = io.StringIO()
    print_summary(run, Console(file=out, width=500))
    return out.getvalue()


def test_an_expectation_that_was_corrected_passes(once: Run, results: Path) -> None:
    assert verdicts(once) == {"reno": "fail", "cubic": "pass"}
    assert exit_code(once) == 1
    again, _ = go(results, wanted=FEW, resume=True)
    assert verdicts(again) == {"reno": "pass", "cubic": "pass"}
    assert [point.reason for point in again.points] == ["", ""]
    assert exit_code(again) == 0
    assert again.digest == once.digest
    stricter, _ = go(results, wanted=MANY, resume=True)
    assert verdicts(stricter) == {"reno": "fail", "cubic": "fail"}
    assert all("want at least 1000" in point.reason for point in stricter.points)
    assert verdicts(load_run(results / once.name)) == {"reno": "fail", "cubic": "pass"}, "a run never changes"


def test_what_was_reused_and_what_was_run_again_is_said(once: Run, results: Path) -> None:
    damaged, whole = once.points
    (results / once.name / "points" / damaged.id / "metrics.json").write_text("")
    again, said = go(results, resume=True)
    size = (damaged.path / "metrics.json").stat().st_size
    why = f"metrics.json: want {size} bytes; got 0"
    assert f"point {damaged.id} of {once.name} is not taken: {why}\n" in said
    assert again.summary["resumed"] == {
        "reused": {once.name: 1},
        "computed_again": [],
        "run_again": [{"point": damaged.id, "run": once.name, "why": why}],
    }
    assert f"resumed  1 of 2 points are from earlier runs, checked: 1 of {once.name}" in shown(again)
    assert f"resumed  1 run again: {why} ({once.name})" in shown(again)
    assert {point.id: point.verdict_file.reused_from for point in again.points} == {
        damaged.id: "",
        whole.id: once.name,
    }
    assert again.digest == once.digest
    assert [point.metrics for point in again.points] == [point.metrics for point in once.points]


def test_a_whole_copy_of_an_older_run_is_taken_before_the_point_is_run(once: Run, results: Path) -> None:
    newer, _ = go(results, resume=True)
    (newer.points[0].path / "packets.parquet").unlink()
    again, said = go(results, resume=True)
    assert f"point {newer.points[0].id} of {newer.name} is not taken: packets.parquet is missing" in said
    assert again.summary["resumed"]["reused"] == {once.name: 1, newer.name: 1}
    assert again.digest == once.digest


def test_pcap_files_are_kept_when_asked_and_a_point_without_them_is_run_again(once: Run, results: Path) -> None:
    assert [point.captures() for point in once.points] == [{}, {}]
    assert not list(once.path.glob("points/*/captures"))
    kept, said = go(results, resume=True, captures=True)
    assert [sorted(point.captures()) for point in kept.points] == [["receiver", "sender"]] * 2
    assert f"points of {once.name} are run again: its captures were not kept (--captures)\n" in said
    assert kept.digest == once.digest
    again, _ = go(results, resume=True, captures=True)
    assert again.summary["resumed"]["reused"] == {kept.name: 2}
    assert [sorted(point.captures()) for point in again.points] == [["receiver", "sender"]] * 2


def test_other_metrics_code_computes_again(once: Run, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = resume.analysis_keys()
    monkeypatch.setattr(resume, "analysis_keys", lambda: real | {"metrics": "another"})
    monkeypatch.setattr(Synthetic, "run", None)
    again, _ = go(results, wanted=SOME, resume=True)
    assert again.summary["resumed"]["computed_again"] == [point.id for point in again.points]
    assert "metrics of 2 of them were computed again from their records" in shown(again)
    assert [point.metrics for point in again.points] == [point.metrics for point in once.points]
    for before, after in zip(once.points, again.points, strict=True):
        assert (after.path / "metrics.json").read_bytes() == (before.path / "metrics.json").read_bytes()
        assert after.stalls() == before.stalls()


def test_other_code_of_records_runs_again(once: Run, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = resume.analysis_keys()
    monkeypatch.setattr(resume, "analysis_keys", lambda: real | {"records": "another"})
    again, said = go(results, resume=True)
    assert again.summary["resumed"]["reused"] == {}
    assert said.count(f"points of {once.name} are run again: other code read its captures\n") == 1, "once, not a point"
    assert "resumed  none of 2 points is from an earlier run" in shown(again)
    assert f"resumed  2 run again: other code read its captures ({once.name})" in shown(again)


def test_results_of_another_format_are_not_reused(once: Run, results: Path) -> None:
    for file in results.glob(f"{once.name}/points/*/verdict.json"):
        told = json.loads(file.read_text()) | {"format": FORMAT + 1}
        file.unlink()  # it may be a hard link of the run's
        file.write_text(json.dumps(told))
    again, said = go(results, resume=True)
    why = "another version of testctl wrote it, in another format"
    assert said.count(f"points of {once.name} are run again: {why}\n") == 1
    assert again.summary["resumed"]["reused"] == {}


def test_a_stopped_run_goes_on(once: Run, results: Path) -> None:
    stopped = results / f"{once.name}.in-progress"
    (results / once.name).rename(stopped)
    for name in ("summary.json", "report.html"):
        (stopped / name).unlink()
    first, second = (point.path for point in load_points(stopped))
    shutil.rmtree(second)
    again, _ = go(results, resume=True)
    assert again.summary["resumed"]["reused"] == {once.name: 1}
    assert {point.id for point in again.points} == {point.id for point in plan().points}
    assert again.digest == once.digest
    assert json.loads((again.path / "points" / first.name / "verdict.json").read_text())["reused_from"] == once.name


def test_a_stopped_run_to_a_directory_of_ones_own_goes_on(once: Run, tmp_path: Path) -> None:
    out = tmp_path / "own[1]"
    for number in (1, 2):
        stopped = tmp_path / "own[1].in-progress"
        shutil.copytree(once.path, stopped)
        (stopped / "summary.json").unlink()
        shutil.rmtree(next(iter(load_points(stopped))).path)
        again, _ = go(tmp_path / "results", resume=True, out=out)
        assert (again.path, again.digest) == (out, once.digest)
        assert again.summary["resumed"]["reused"] == {f"own[1].stopped-{number}": 1}
        assert not stopped.exists()
        shutil.rmtree(out)


def test_a_run_that_another_process_goes_on_with_is_not_taken_away(once: Run, tmp_path: Path) -> None:
    going = tmp_path / "own.in-progress"
    shutil.copytree(once.path, going)
    (going / WORK).mkdir()
    temporary.hold(going / WORK)
    try:
        with pytest.raises(PlanError, match=r"own\.in-progress: the result directory exists already"):
            go(tmp_path / "results", resume=True, out=tmp_path / "own")
    finally:
        temporary.release(going / WORK)
    assert len(list((going / "points").iterdir())) == 2
