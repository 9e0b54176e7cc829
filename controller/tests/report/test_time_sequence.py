# SPDX-License-Identifier: Apache-2.0
"""Time-sequence figures of recoveries: what is in them, and that both kinds are drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from testctl.curves import Window, figure, lines_of
from testctl.metrics import analyse
from testctl.metrics.recovery import flow_recoveries
from testctl.records import load_raw
from testctl.report import write_report
from testctl.report.embedded import embedded
from testctl.report.figures import paper_figures
from testctl.results import PointResult, Run, RunWriter, build_summary, load_run, write_point

from controller.tests.report.reading import drawn_points, point_of
from controller.tests.support.synthetic import write_point as write_captures
from controller.tests.support.synthetic_recovery import MSS, Sender

PLAN = """\
figures:
  - {title: PRR, kind: time_sequence}
  - {title: its start, kind: time_sequence, from: 100ms, to: 103ms, flow: bulk}
  - {title: each, kind: connections, bin: 1ms}
"""


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of one point: PRR, a window of 20, losses of a data packet and of its retransmission."""
    where = tmp_path_factory.mktemp("recovered")
    write_captures(where / "raw", Sender("prr", 20, 60, [0, 22]).run().talk.captures())
    records = load_raw(where / "raw")
    records.point = replace(records.point, id="a" * 12, tuples=(), repeat=0, duration_ns=0)
    point = records.point.to_json()
    found = analyse(records)
    now = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
    writer = RunWriter.create(where / "results", "prr", now=now)
    writer.write_plan(PLAN, {})
    writer.write_versions({})
    write_point(writer.path, PointResult(point, "pass", metrics=found.metrics, records=records, stalls=found.stalls))
    summary = build_summary(
        writer.path, plan="prr", started=now, wall_s=1.0, versions={}, expectations=[], order=[point["id"]], about=""
    )
    return load_run(writer.finish(summary))


@pytest.fixture(scope="module")
def data(recovered: Run) -> dict[str, Any]:
    found = embedded(recovered.points[0])
    assert found is not None
    return found


def test_every_packet_is_in_it(recovered: Run) -> None:
    records = recovered.points[0].records()
    assert records is not None
    lines = {line.name: line for line in lines_of(records, "seq", ("bulk", 0))}
    low = {name: line.value - line.detail["length"] for name, line in lines.items() if "length" in line.detail}
    assert (len(lines["data"]), low["data"][0], lines["data"].value[-1]) == (60, 0, 60 * MSS)
    assert len(lines["retransmission"]) == 2
    assert lines["never arrived"].value.tolist() == [MSS, MSS]
    assert "dropped" not in lines
    assert (lines["window"].value >= 0).all()
    assert (lines["SACK block"].detail["length"] >= MSS).all()
    assert [one.fast for one in flow_recoveries(records, "bulk")] == [True, False]


def test_the_page_has_all_of_a_short_connection_and_a_view_of_each_recovery(data: dict[str, Any]) -> None:
    views = data["figures"]["seq"]
    (whole,) = (one for one in views if (one["from"], one["to"]) == (0, data["duration_ns"]))
    assert whole["data"]["bucket_ns"] == 0
    assert {line["name"]: line["rows"] for line in whole["data"]["lines"]}["data"] == 60
    found = data["recoveries"]
    assert [one["fast"] for one in found["rows"]] == [True, False]
    assert {(one["from"], one["to"]) for one in found["rows"]} <= {(one["from"], one["to"]) for one in views}
    assert found["rows"][0]["cells"][2:4] == ["duplicate ACKs", "timeout"]
    assert found["rows"][0]["cells"][6].startswith("N N R . N")


def test_a_long_one_is_cut_to_what_fits(tmp_path: Path) -> None:
    write_captures(tmp_path, Sender("prr", 20, 3000, range(50, 400, 70)).run().talk.captures())
    records = load_raw(tmp_path)
    window = Window(0, int(records.column("time_ns").max()), 100)
    shown = figure(records, "seq", ("bulk", 0), window)
    assert shown["bucket_ns"] > 0
    assert "SACK block" not in {line["name"] for line in shown["lines"]}
    assert sum(len(line["t"]) for line in shown["lines"]) <= 4 * 2 * 100 * len(shown["lines"])


def test_without_recoveries_there_is_no_list(tmp_path: Path) -> None:
    write_captures(tmp_path, Sender("prr", 20, 60, []).run().talk.captures())
    assert flow_recoveries(load_raw(tmp_path), "bulk") == []


def test_figures_are_written(recovered: Run, tmp_path: Path) -> None:
    written = paper_figures(recovered, tmp_path)
    assert len(written) == 4 * 3
    first, last = ((tmp_path / f"paper-{n}.svg").read_text(encoding="utf-8") for n in (1, 3))
    assert all(
        f">{words}" in first for words in ("PRR", "data", "retransmission (2)", "SACK block", "never arrived (2)")
    )
    assert ">each" in last
    page = write_report(recovered.path).read_text(encoding="utf-8")
    (point,) = drawn_points(page)
    recovery = point_of(page, point)["recoveries"]["rows"][0]
    assert (recovery["lane"], recovery["fast"]) == ("bulk/0", True)
