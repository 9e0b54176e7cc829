# SPDX-License-Identifier: Apache-2.0
"""A run is read back as it was written; what can't be read is named."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from testctl.results import PointResult, Run, RunWriter, build_summary, connect, git_commit, load_run, write_point
from testctl_agent.spec.errors import PlanError, TestctlError

from controller.tests.support.few_packets import few_packets

NOW = datetime(2026, 1, 31, 12, 5, 7, tzinfo=UTC)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    writer = RunWriter.create(tmp_path / "it's", "p", need=0, now=NOW)
    for number in range(2):
        point = {"id": f"a{number}", "tuples": [["sender", "tso", True], ["ends", "cc", f"cc{number}"]], "flows": []}
        records = few_packets(point, [{}] * (number + 2))
        metrics = {"bulk": {"throughput_bps": 1e9 + number, "nothing": float("nan")}}
        write_point(writer.path, PointResult(point, "pass", metrics=metrics, records=records))
    write_point(writer.path, PointResult({"id": "b0", "tuples": []}, "broken", reason="the lab hung"))
    order = ["b0", "a1", "a0"]
    return load_run(
        writer.finish(build_summary(writer.path, plan="p", started=NOW, wall_s=1, versions={}, order=order))
    )


def test_points_come_in_the_order_of_the_summary(run: Run) -> None:
    assert [point.id for point in run.points] == ["b0", "a1", "a0"]
    assert (run.name, run.complete) == ("20260131T120507Z-p", True)
    assert run.points[1].tuples == (("sender", "tso", True), ("ends", "cc", "cc1"))


def test_records_are_read_when_asked_for(run: Run) -> None:
    point = run.point("a1")
    packets = point.packets(["time_ns"])
    assert packets is not None
    assert packets.shape == (3, 1)
    records = point.records()
    assert records is not None
    assert records.digest() == point.digest
    broken = run.point("b0")
    assert (broken.packets(), broken.records(), broken.stalls(), broken.has_records) == (None, None, None, False)


def test_sql_sees_all_points(run: Run) -> None:
    with connect(run) as connection:
        counted = connection.sql("select point, count(*) from packets group by point order by point").fetchall()
        assert counted == [("a0", 2), ("a1", 3)]
        joined = "select value from tuples join points using (point) where parameter = 'cc' order by value"
        assert connection.sql(joined).fetchall() == [("cc0",), ("cc1",)]
        most = "select max(value), count(*) from metrics"
        assert connection.sql(most).fetchall() == [(1e9 + 1, 2)]
        assert connection.sql("select reason from points where verdict = 'broken'").fetchall() == [("the lab hung",)]


def test_a_point_is_found_by_the_start_of_its_id(run: Run) -> None:
    assert run.point("b").id == "b0"
    with pytest.raises(PlanError, match="want the id of one point; 'a' names a1, a0"):
        run.point("a")
    with pytest.raises(PlanError, match="want the id of one point; 'zz' names none"):
        run.point("zz")
    seven = replace(run, points=[replace(run.points[0], id=f"c{n}") for n in range(7)])
    with pytest.raises(PlanError, match="'c' names c0, c1, c2, c3, c4, and 2 more"):
        seven.point("c")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="want the directory of a run"):
        load_run(tmp_path)


@pytest.mark.parametrize("damage", ["{", "[]", '{"id": "a0"}'])
def test_a_damaged_verdict_is_named(run: Run, damage: str) -> None:
    (run.path / "points" / "a0" / "verdict.json").write_text(damage)
    with pytest.raises(PlanError, match=r"points/a0"):
        load_run(run.path)


@pytest.mark.parametrize(
    ("name", "document", "why"),
    [
        ("fates", {"fates": [{"switch": "left"}]}, r"want fates\[0\].rule; it is not there"),
        ("violations", {"violations": [{"rule": 5}]}, r"want a text at violations\[0\].rule; got 5"),
        ("point", {"settings": 5}, "want an object at settings; got 5"),
        ("outcome", {"unjudged": []}, "want an object at unjudged; got list"),
    ],
)
def test_files_of_another_shape_are_named(run: Run, name: str, document: dict[str, object], why: str) -> None:
    (run.path / "points" / "a0" / f"{name}.json").write_text(json.dumps(document))
    with pytest.raises(PlanError, match=rf"points/a0/{name}\.json: {why}"):
        getattr(run.point("a0"), name)


def test_a_plan_that_is_no_utf_8_is_shown_as_far_as_it_is(run: Run) -> None:
    (run.path / "plan.yaml").write_bytes(b"about: caf\xe9\n")
    assert run.plan_text == "about: caf\ufffd\n"


def test_damaged_records_are_named(run: Run) -> None:
    (run.path / "points" / "a0" / "packets.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(TestctlError, match=r"points/a0/packets\.parquet"):
        run.point("a0").packets()


def test_the_commit_is_read_from_the_repository(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    inside = tmp_path / "deep" / "file.py"
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert git_commit(inside) is None
    (git / "packed-refs").write_text("# pack-refs\n1111 refs/heads/main\n")
    assert git_commit(inside) == "1111"
    (git / "refs" / "heads" / "main").write_text("2222\n")
    assert git_commit(inside) == "2222"
    (git / "HEAD").write_text("3333\n")
    assert git_commit(inside) == "3333"
