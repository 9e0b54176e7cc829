# SPDX-License-Identifier: Apache-2.0
"""A point is used again only if it is what was written, by the code that there is now."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from testctl.core.temporal import Temporal
from testctl.execution.assess import Assessment, assess
from testctl.records import Records
from testctl.results import PointResult, RunPoint, RunWriter, build_summary, load_point, set_verdict, write_point
from testctl.results.reuse import Kept, UnusableError, as_measured, kept_points, take, unusable

from controller.tests.support.few_packets import few_packets

NOW = datetime(2026, 1, 31, 12, 5, 7, tzinfo=UTC)
ANALYSIS = {"records": "r1", "metrics": "m1"}


def result(point_id: str = "aa01", verdict: str = "pass", **more: Any) -> PointResult:
    point = {"id": point_id, "tuples": [["hosts", "cc", "dctcp"]], "flows": []}
    given: dict[str, Any] = {"records": few_packets(point, [{}] * 3), "code_key": "k1", "analysis": ANALYSIS, **more}
    return PointResult(point, verdict, metrics={"bulk": {"throughput_bps": 1.9e9}}, **given)


def run_at(results: Path, hour: int, *points: PointResult, complete: bool = False) -> Path:
    writer = RunWriter.create(results, "p", need=0, now=NOW.replace(hour=hour))
    for point in points:
        write_point(writer.path, point)
    if not complete:
        return writer.path
    return writer.finish(build_summary(writer.path, plan="p", started=NOW, wall_s=3, versions={}))


def first_of(results: Path) -> Kept:
    kept = kept_points(results, "aa01")[0]
    assert unusable(kept, "k1", "r1") == ""
    return kept


def taken(results: Path, kept: Kept, again: Callable[[Records], Any] = assess, metrics: str = "m1") -> RunPoint:
    new = run_at(results, 23)
    take(new, kept, {"records": "r1", "metrics": metrics}, again)
    return load_point(new / "points" / "aa01")


def test_the_newest_run_comes_first(tmp_path: Path) -> None:
    old = run_at(tmp_path, 1, result(), complete=True)
    stopped = run_at(tmp_path, 2, result())
    (stopped / "points" / ".bb.1.tmp").mkdir()
    assert [kept.path for kept in kept_points(tmp_path, "aa01")] == [p / "points" / "aa01" for p in (stopped, old)]
    assert [kept.run for kept in kept_points(tmp_path, "aa01", "*T01*")] == [old.name]
    assert kept_points(tmp_path, "bb") == []
    assert kept_points(tmp_path / "none", "aa01") == []


def test_what_is_taken_is_the_same_and_says_where_it_is_from(tmp_path: Path) -> None:
    old = run_at(tmp_path, 1, result())
    after = taken(tmp_path, first_of(tmp_path))
    before = load_point(old / "points" / "aa01")
    assert (after.digest, after.metrics, after.verdict) == (before.digest, before.metrics, "pass")
    assert after.summary()["reused_from"] == "20260131T010507Z-p"
    same = [(point.path / "packets.parquet").stat().st_ino for point in (before, after)]
    assert same[0] == same[1]
    again = run_at(tmp_path, 22)
    take(again, Kept(after.path, after.verdict_file), ANALYSIS, assess)
    assert load_point(again / "points" / "aa01").verdict_file.reused_from == "20260131T010507Z-p", (
        "where it was measured"
    )


def test_a_judgement_stays_with_the_run_that_made_it(tmp_path: Path) -> None:
    old = run_at(tmp_path, 1, result())
    set_verdict(load_point(old / "points" / "aa01"), "fail", "an expectation of then")
    assert load_point(old / "points" / "aa01").measured.to_json() == {"verdict": "pass", "reason": ""}
    after = taken(tmp_path, first_of(tmp_path))
    assert (after.verdict, after.reason) == ("pass", "")
    assert load_point(old / "points" / "aa01").verdict == "fail"


@pytest.mark.parametrize("verdict", ["broken", "invalid", "skip"])
def test_what_was_not_measured_is_not_taken(tmp_path: Path, verdict: str) -> None:
    run_at(tmp_path, 1, result(verdict=verdict))
    assert unusable(kept_points(tmp_path, "aa01")[0], "k1", "r1") == f"it was {verdict}"


def test_what_other_code_made_is_not_taken(tmp_path: Path) -> None:
    run_at(tmp_path, 1, result())
    kept = kept_points(tmp_path, "aa01")[0]
    assert unusable(kept, "k2", "r1") == "other code made it: kernel, agents, tgen, switch program or lab"
    assert unusable(kept, "k1", "r2") == "other code read its captures"


def _rewrite(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _number(path: Path) -> None:
    _rewrite(path, path.read_text(encoding="utf-8").replace("1900000000.0", "1900000001.0"))


def _packets(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(1), path)


def _digest(path: Path) -> None:
    _rewrite(path, json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"digest": "0" * 64}))


def _link(path: Path) -> None:
    aside = path.parents[3] / "aside"
    path.rename(aside)
    path.symlink_to(aside)


DAMAGES: list[tuple[str, Callable[[Path], Any], str]] = [
    ("packets.parquet", Path.unlink, r"packets\.parquet is missing"),
    ("packets.parquet", lambda path: os.truncate(path, 0), r"packets\.parquet: want \d+ bytes; got 0"),
    ("packets.parquet", _packets, r"packets\.parquet: want "),
    ("packets.parquet", _link, r"packets\.parquet: want a plain file"),
    ("metrics.json", lambda path: os.truncate(path, 0), r"metrics\.json: want \d+ bytes; got 0"),
    ("metrics.json", _number, r"metrics\.json: want sha256 [0-9a-f]{16}…; got another"),
    ("more.json", Path.touch, r"more\.json is not in the manifest"),
    ("verdict.json", _digest, r"packets\.parquet: want packets of the digest 0000000000000000…; got [0-9a-f]{16}…"),
]


@pytest.mark.parametrize(("name", "damage", "words"), DAMAGES)
def test_what_is_not_as_it_was_written_is_not_taken(
    tmp_path: Path, name: str, damage: Callable[[Path], Any], words: str
) -> None:
    old = run_at(tmp_path, 1, result())
    damage(old / "points" / "aa01" / name)
    kept = first_of(tmp_path)
    new = run_at(tmp_path, 23)
    with pytest.raises(UnusableError, match=words):
        take(new, kept, ANALYSIS, assess)
    assert list((new / "points").iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000])
def test_a_verdict_that_can_not_be_read_is_no_reason_to_stop(tmp_path: Path, text: str) -> None:
    old = run_at(tmp_path, 1, result())
    _rewrite(old / "points" / "aa01" / "verdict.json", text)
    assert unusable(kept_points(tmp_path, "aa01")[0], "k1", "r1") == "verdict.json can't be read"


@pytest.mark.parametrize("text", ["null", "7", "[]", "{"])
def test_answers_that_can_not_be_read_are_none(tmp_path: Path, text: str) -> None:
    point = run_at(tmp_path, 1, result(answers={"always": {}})) / "points" / "aa01"
    condition = Temporal("cwnd", always=True)
    (point / "answers.json").write_text(text)
    assert not as_measured(point, "k1", ANALYSIS, [condition])


def test_with_other_metrics_code_it_is_computed_from_its_records(tmp_path: Path) -> None:
    old = run_at(tmp_path, 1, result())
    table = pa.table({"flow": pa.array([], pa.string())})

    def again(records: Records) -> Assessment:
        return Assessment("pass", "", {"bulk": {"throughput_bps": float(records.packets.num_rows)}}, table, [], [])

    after = taken(tmp_path, first_of(tmp_path), again, metrics="m2")
    assert after.metrics == {"bulk": {"throughput_bps": 3.0}}
    assert load_point(old / "points" / "aa01").metrics == {"bulk": {"throughput_bps": 1.9e9}}, "a run never changes"
    kept = Kept(after.path, after.verdict_file)
    take(run_at(tmp_path, 22), kept, {"records": "r1", "metrics": "m2"}, again)


def test_computed_again_it_may_turn_out_invalid(tmp_path: Path) -> None:
    run_at(tmp_path, 1, result())
    table = pa.table({"flow": pa.array([], pa.string())})
    with pytest.raises(UnusableError, match="computed from its records again it is invalid: the ends differ"):
        taken(tmp_path, first_of(tmp_path), lambda _: Assessment("invalid", "the ends differ", {}, table, [], []), "m2")


def test_without_records_it_can_not_be_computed_again(tmp_path: Path) -> None:
    run_at(tmp_path, 1, result(records=None))
    assert taken(tmp_path, first_of(tmp_path)).verdict == "pass"
    with pytest.raises(UnusableError, match="it has no records to compute them from"):
        taken(tmp_path, first_of(tmp_path), metrics="m2")
