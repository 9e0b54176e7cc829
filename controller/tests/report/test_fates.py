# SPDX-License-Identifier: Apache-2.0
"""Fates in the report: which packets, how many, and that thousands stay readable."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from rich.console import Console
from testctl.curves import Line, lines_of
from testctl.metrics import analyse
from testctl.packet_actions import check_fates
from testctl.records import load_raw
from testctl.records.schema import Array
from testctl.report import print_summary, write_report
from testctl.report.embedded import embedded
from testctl.report.fates import MAX_PACKETS, Fates, read_fates
from testctl.results import PointResult, Run, RunWriter, build_summary, load_run
from testctl.results import write_point as keep_point
from testctl_agent.spec.loss import is_lost, loss

from controller.tests.report.reading import point_of
from controller.tests.support.synthetic import bulk, write_point
from controller.tests.support.synthetic_telemetry import befall, passage, write_telemetry

COUNT = 4000
LINKS = [["sender", "switch"], ["switch", "receiver"]]
FEW, MANY, WRONG = "drop data 1-4 of bulk, first", "lose 0.05 of bulk seed 1", "drop data 5000 of bulk"


def told(asked: str, sent: dict[str, Array]) -> dict[str, Array]:
    """The telemetry of a switch that did as it was asked, and marked and dropped by its queue besides."""
    queue = 30_000 + (20_000 * np.sin(np.arange(len(sent["time_ns"])) / 300)).astype(np.int64)
    found = passage(sent, latency_ns=5_000_000, queue_bytes=np.where(sent["length"] > 0, queue, 0))
    data = np.flatnonzero(found["kind"] == 1)
    if asked == FEW:
        befall(found, "drop", data[:4])
    if asked == MANY:
        befall(found, "lose", data[[is_lost(loss(1, 0.05, 1), n) for n in range(1, COUNT + 1)]])
        spared = data[(found["verdict"][data] == 0) & (found["queue_bytes"][data] > 45_000)]
        befall(found, "queue_mark", spared)
    return found


@pytest.fixture(scope="module")
def fated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three points: four packets dropped as asked, two hundred lost, and one that could not be."""
    where = tmp_path_factory.mktemp("fates")
    captures = bulk(COUNT, rate_bps=100e6)
    writer = RunWriter.create(where / "results", "fates", now=datetime(2026, 1, 31, 12, 0, tzinfo=UTC))
    writer.write_plan("topology: pair\n", {})
    order = []
    for number, asked in enumerate((FEW, MANY, WRONG)):
        raw = where / str(number)
        write_point(raw, captures, settings={"switch": {"fate": asked}})
        point = json.loads((raw / "point.json").read_text()) | {
            "id": f"{number:012x}",
            "tuples": [["switch", "fate", asked]],
            "topology": {"switches": ["switch"], "links": LINKS},
        }
        (raw / "point.json").write_text(json.dumps(point))
        write_telemetry(raw, told(asked, captures["sender"]))
        records = load_raw(raw)
        findings, reasons = check_fates(records)
        analysis = analyse(records)
        keep_point(
            writer.path,
            PointResult(
                point,
                "invalid" if reasons else "pass",
                reason="; ".join(reasons),
                metrics=analysis.metrics,
                records=records,
                stalls=analysis.stalls,
                fates=[found.to_json() for found in findings],
            ),
        )
        order.append(point["id"])
    summary = build_summary(
        writer.path, plan="fates", started=datetime(2026, 1, 31, tzinfo=UTC), wall_s=1, versions={}, order=order
    )
    write_report(replace(load_run(writer.path), summary=summary))
    return load_run(writer.finish(summary))


def of(run: Run, point: int) -> tuple[Fates, dict[str, Line]]:
    """The fates of a point, and the lines of its time-sequence figure."""
    records = run.points[point].records()
    assert records is not None
    return read_fates(run.points[point], records), {line.name: line for line in lines_of(records, "seq", ("bulk", 0))}


def test_the_few_are_all_listed(fated: Run) -> None:
    fates, lines = of(fated, 0)
    assert [packet.packet for packet in fates.packets] == [
        f"data {n} (first transmission {n}) {1448 * (n - 1)}:{1448 * n}" for n in range(1, 5)
    ]
    assert fates.counts == [("switch:receiver", "bulk", "dropped", 4)]
    assert fates.left_out == 0
    assert lines.keys() & {"dropped", "marked CE"} == {"dropped"}
    data = embedded(fated.points[0])
    assert data is not None
    assert data["events"]["fates"]["asked"] == [["switch", FEW, 0, 4, 4, "1-4", "", 0]]


def test_of_many_the_first_are_listed_and_all_counted(fated: Run) -> None:
    fates, lines = of(fated, 1)
    lost = sum(is_lost(loss(1, 0.05, 1), n) for n in range(1, COUNT + 1))
    counts = {what: count for _, _, what, count in fates.counts}
    assert counts["lost"] == lost
    assert counts["marked CE by the port"] > 500
    assert len(fates.packets) == 2 * MAX_PACKETS
    assert fates.left_out == sum(counts.values()) - 2 * MAX_PACKETS
    assert len(lines["dropped"]) == lost


def test_the_queue_is_the_ports(fated: Run) -> None:
    records = fated.points[0].records()
    assert records is not None
    ports = {line.name: line.value.max() for line in lines_of(records, "queue", None)}
    assert ports == {"switch:receiver": 49_999, "switch:sender": 0}


def test_the_page_says_what_was_asked(fated: Run) -> None:
    html = (fated.path / "report.html").read_text(encoding="utf-8")
    (asked,) = point_of(html, fated.points[2].id)["events"]["fates"]["asked"]
    assert "not: 5000 (the flow had 4000 data segments)" in asked[6]


def test_the_terminal_says_it_in_a_line_a_rule(fated: Run) -> None:
    out = io.StringIO()
    print_summary(fated, Console(file=out, width=200))
    text = out.getvalue()
    assert f"fates   switch: {FEW}: 4 of 4 packets\n" in text
    assert f"fates   switch: {WRONG}: 0 of 1 packets\n" in text
