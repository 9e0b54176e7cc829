# SPDX-License-Identifier: Apache-2.0
"""A run is there whole or not at all, and its errors say what was lost."""

from __future__ import annotations

import errno
import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from testctl.results import (
    PointResult,
    RunWriter,
    build_summary,
    check_place,
    load_point,
    load_run,
    run_digest,
    set_verdict,
    write_point,
)
from testctl_agent.spec.errors import PlanError, TestbedError

from controller.tests.support.few_packets import few_packets

NOW = datetime(2026, 1, 31, 12, 5, 7, tzinfo=UTC)


def result(point_id: str = "aa01", verdict: str = "pass", *, records: bool = True, **more: Any) -> PointResult:
    point = {"id": point_id, "tuples": [["ends", "cc", "dctcp"]], "flows": []}
    outcome = {"entities": {"sender": {"kind": "host", "before": {"cc": "cubic"}, "after": {"cc": "cubic"}}}}
    made = few_packets(point, outcome=outcome) if records else None
    metrics = {"bulk": {"throughput_bps": 1.9e9, "oscillation_period_ms": float("nan")}}
    return PointResult(
        point, verdict, code_key="k1", wall_s=1.5, virtual_s=2.0, outcome=outcome, metrics=metrics, records=made, **more
    )


def finish(writer: RunWriter) -> Path:
    return writer.finish(build_summary(writer.path, plan="p", started=NOW, wall_s=3, versions={"kernel": "6.12"}))


def test_a_run_is_named_by_its_time_and_plan_and_renamed_when_complete(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, "dctcp_htb", need=0, now=NOW)
    assert writer.path.name == "20260131T120507Z-dctcp_htb.in-progress"
    writer.write_plan("about: x # kept\n", {"points": []})
    writer.write_versions({"kernel": "6.12"})
    write_point(writer.path, result())
    assert not (tmp_path / "latest").exists()
    final = finish(writer)
    assert final.name == "20260131T120507Z-dctcp_htb"
    assert sorted(path.name for path in tmp_path.iterdir()) == [final.name, "latest"]
    assert os.readlink(tmp_path / "latest") == final.name
    assert (final / "plan.yaml").read_text() == "about: x # kept\n"


def test_a_point_has_all_its_files(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, "p", need=0, now=NOW)
    capture = tmp_path / "raw.pcap"
    capture.write_bytes(b"pcap")
    stalls = pa.table({"flow": pa.array([], pa.string())})
    made = write_point(writer.path, result(stalls=stalls, captures={"sender": capture}))
    assert sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()) == [
        "captures/sender.pcap",
        "metrics.json",
        "outcome.json",
        "packets.parquet",
        "point.json",
        "records.json",
        "stalls.parquet",
        "tcp_info.parquet",
        "verdict.json",
    ]
    assert load_point(made).state("before") == {"sender": {"cc": "cubic"}}
    assert json.loads((made / "records.json").read_text()).keys() == {"counters", "notes"}
    assert json.loads((made / "metrics.json").read_text())["bulk"]["oscillation_period_ms"] is None


def test_summary_has_the_form_that_the_design_fixes(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, "p", need=0, now=NOW)
    write_point(writer.path, result("bb"))
    write_point(writer.path, result("aa", "broken", records=False, reason="the lab was killed"))
    expectations = [{"name": "steady", "verdict": "fail", "detail": "got 0.9", "points": ["bb"]}]
    summary = build_summary(
        writer.path, plan="p", started=NOW, wall_s=3.14159, versions={}, expectations=expectations, order=["bb", "aa"]
    )
    written = json.loads((writer.finish(summary) / "summary.json").read_text())
    keys = "plan about reproduce run digest started wall_s counts expectations versions points"
    assert " ".join(written) == keys
    assert [point["id"] for point in written["points"]] == ["bb", "aa"]
    first, second = written["points"]
    assert list(first) == ["id", "tuples", "verdict", "reason", "digest", "wall_s", "virtual_s", "metrics"]
    assert first["tuples"] == [["ends", "cc", "dctcp"]]
    assert len(first["digest"]) == 64
    assert (second["verdict"], second["digest"]) == ("broken", "")
    assert written["counts"] == {"pass": 1, "fail": 0, "invalid": 0, "skip": 0, "broken": 1}
    assert written["digest"] == run_digest([("bb", first["digest"]), ("aa", "")])
    assert written["digest"] == run_digest([("aa", ""), ("bb", first["digest"])])


def test_a_directory_that_exists_is_refused(tmp_path: Path) -> None:
    RunWriter.create_at(tmp_path / "under_way", need=0)
    with pytest.raises(PlanError, match=r"under_way\.in-progress: the result directory exists already") as caught:
        RunWriter.create_at(tmp_path / "under_way", need=0)
    assert caught.value.exit_code == 2
    (tmp_path / "mine").mkdir()
    with pytest.raises(PlanError, match=r"mine: the result directory exists already"):
        RunWriter.create_at(tmp_path / "mine", need=0)


def test_runs_of_one_second_are_numbered(tmp_path: Path) -> None:
    first, second = (RunWriter.create(tmp_path, "p", need=0, now=NOW) for _ in range(2))
    write_point(first.path, result())
    finish(first)
    third = RunWriter.create(tmp_path, "p", need=0, now=NOW)
    names = [writer.name for writer in (first, second, third)]
    assert names == ["20260131T120507Z-p", "20260131T120507Z.02-p", "20260131T120507Z.03-p"]
    assert sorted(names) == names, "the newest comes last"


def test_no_room_is_refused_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil._ntuple_diskusage(10**12, 10**12, 3_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
    with pytest.raises(PlanError, match=r"new: want 2\.0 GB free for results; got 3\.0 MB on "):
        RunWriter.create(tmp_path / "new", "p", need=2 * 10**9)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_can_not_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanError, match=r"want a directory for results; got .*file, which is a file"):
        check_place(tmp_path / "file" / "below", 0)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PlanError, match=r"want a writable directory for results; .* is not writable"):
        check_place(tmp_path / "new", 0)


@pytest.mark.parametrize("name", ["../up", "", "a/b", ".hidden", "x" * 101])
def test_names_that_are_no_file_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PlanError, match=r"plan: want a name of letters"):
        RunWriter.create(tmp_path, name, need=0)


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "no space left on the device"), (errno.EACCES, "not writable")]
)
def test_a_point_that_can_not_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    writer = RunWriter.create(tmp_path, "p", need=0, now=NOW)
    write_point(writer.path, result("aa"))

    def full(*args: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(TestbedError, match=rf"points/bb: {words}.*; point bb was lost, finished points are kept"):
        write_point(writer.path, result("bb"))
    assert [path.name for path in (writer.path / "points").iterdir()] == ["aa"]


@pytest.mark.root
def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    libc = __import__("ctypes").CDLL(None, use_errno=True)
    disk = tmp_path / "disk"
    disk.mkdir()
    if libc.mount(b"none", str(disk).encode(), b"tmpfs", 0, b"size=200k") != 0:
        pytest.skip("can't mount a tmpfs here")
    try:
        writer = RunWriter.create(disk, "p", need=0, now=NOW)
        write_point(writer.path, result("aa"))
        big = tmp_path / "big.pcap"
        big.write_bytes(bytes(400_000))
        with pytest.raises(TestbedError, match=r"no space left on the device; point bb was lost"):
            write_point(writer.path, result("bb", captures={"sender": big}))
        assert [path.name for path in (writer.path / "points").iterdir()] == ["aa"]
        assert load_run(writer.path).points[0].verdict == "pass"
    finally:
        assert libc.umount(str(disk).encode()) == 0


def test_points_and_complete_runs_are_never_changed(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, "p", need=0, now=NOW)
    write_point(writer.path, result())
    with pytest.raises(TestbedError, match="the point exists already; points are never overwritten"):
        write_point(writer.path, result())
    set_verdict(load_point(writer.path / "points" / "aa01"), "fail", "too slow")
    final = finish(writer)
    assert load_run(final).points[0].reason == "too slow"
    with pytest.raises(TestbedError, match="the run is complete; results are never changed afterwards"):
        set_verdict(load_point(final / "points" / "aa01"), "pass")


def test_a_summary_that_is_not_of_this_run_is_refused(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, "p", need=0, now=NOW)
    write_point(writer.path, result("aa"))
    with pytest.raises(TestbedError, match=r"want the same points in summary\.json and points/; not in both: aa, bb"):
        writer.finish({"points": [{"id": "bb"}]})
    assert writer.path.exists()


def test_unknown_verdicts_are_refused(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, "p", need=0, now=NOW)
    with pytest.raises(TestbedError, match="point aa01: want a verdict of pass, fail, invalid, skip, broken; got 'ok'"):
        write_point(writer.path, result(verdict="ok"))


def test_discard_removes_a_run_without_points_only(tmp_path: Path) -> None:
    empty = RunWriter.create(tmp_path, "empty", need=0, now=NOW)
    empty.discard()
    assert not empty.path.exists()
    full = RunWriter.create(tmp_path, "full", need=0, now=NOW)
    write_point(full.path, result())
    full.discard()
    assert full.path.exists()
