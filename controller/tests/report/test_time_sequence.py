# SPDX-License-Identifier: Apache-2.0
"""Time-sequence figures of recoveries: what is in them, and that both kinds are drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from testctl.metrics import analyse
from testctl.metrics.core.view import view
from testctl.records import load_raw
from testctl.report import paper_figures, write_report
from testctl.report.payload import payload
from testctl.report.recovery_payload import recovery_payload
from testctl.report.series import Series, read_series
from testctl.report.time_sequence import time_sequence
from testctl.results import PointResult, Run, RunWriter, build_summary, load_run, write_point

from controller.tests.support.synthetic import write_point as write_captures
from controller.tests.support.synthetic_recovery import MSS, Sender

PLAN = """\
figures:
  - {title: PRR, kind: time_sequence}
  - {title: its start, kind: time_sequence, from: 100ms, to: 103ms, flow: bulk}
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
def series(recovered: Run) -> Series:
    found = read_series(recovered.points[0])
    assert found is not None
    return found


def test_every_packet_is_in_it(series: Series) -> None:
    (shown,) = series.time_sequences
    assert (len(shown.data.time_ns), shown.data.low[0], shown.data.high[-1]) == (60, 0, 60 * MSS)
    assert len(shown.again.time_ns) == 2
    assert shown.drops_say == "never arrived"
    assert shown.drops.level.tolist() == [MSS // 2, MSS // 2]
    assert (shown.edge.level >= shown.una.level).all()
    assert ((shown.sacks.high - shown.sacks.low) >= MSS).all()
    assert [one.fast for one in shown.recoveries] == [True, False]


def test_the_page_has_all_of_a_short_connection_and_a_view_of_each_recovery(series: Series) -> None:
    found = payload(series)["recovery"]
    (figure,) = found["figures"]
    assert [view["label"] for view in figure["views"]] == ["all", "1", "2"]
    assert len(figure["data"]["x"]) == 60
    assert [period["fast"] for period in figure["periods"]] == [True, False]
    assert figure["drawn"] == figure["recoveries"] == 2
    assert found["list"][0][2:4] == ["duplicate ACKs", "timeout"]
    assert found["list"][0][6].startswith("N N R . N")


def test_a_long_one_is_cut_to_what_fits(tmp_path: Path) -> None:
    write_captures(tmp_path, Sender("prr", 20, 300, range(50, 400, 70)).run().talk.captures())
    records = load_raw(tmp_path)

    found = recovery_payload([time_sequence(view(records, "bulk"), 0)], most=150)
    assert found is not None
    (figure,) = found["figures"]
    assert 0 < figure["drawn"] < figure["recoveries"]
    assert figure["views"][0]["label"] == "1"
    assert len(figure["views"]) <= figure["drawn"]
    assert sum(len(figure[part]["x"]) for part in ("data", "again", "sacks", "una", "drops")) <= 150


def test_without_recoveries_there_is_no_figure(tmp_path: Path) -> None:
    write_captures(tmp_path, Sender("prr", 20, 60, []).run().talk.captures())
    records = load_raw(tmp_path)

    assert recovery_payload([time_sequence(view(records, "bulk"), 0)]) is None


def test_figures_are_written(recovered: Run, tmp_path: Path) -> None:
    written = paper_figures(recovered, tmp_path)
    assert [path.name for path in written] == ["paper.png", "paper-1.png", "paper-2.png"]
    assert all(path.stat().st_size > 8_000 for path in written)
    page = write_report(recovered.path).read_text(encoding="utf-8")
    assert '"recovery":{"figures":' in page
