# SPDX-License-Identifier: Apache-2.0
"""`testctl.load`: tables of a run, and errors that name what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
import testctl
from testctl.api import Run
from testctl.records import PACKETS
from testctl.results import PointResult, RunWriter, build_summary, write_point
from testctl_agent.spec.errors import PlanError

from controller.tests.serve.conftest import make_run
from controller.tests.support.few_packets import few_packets
from controller.tests.support.synthetic_sweep import make_sweep

NOW = datetime(2026, 1, 31, 12, 5, 7, tzinfo=UTC)
FLOWS = [{"name": n, "from": "s", "to": "r", "server_port": 5001, "client_port": 40000} for n in ("bulk", "other")]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    writer = RunWriter.create_at(tmp_path / "run", need=0)
    for number, kernel in enumerate(("6.1", "6.12")):
        tuples = [["sender", "mtu", str(1500 + number)], ["ends", "kernel", kernel]]
        point = {"id": f"a{number}", "tuples": tuples, "flows": FLOWS}
        metrics = {"bulk": {"ce_marks": number}, "other": {"ce_marks": 7}, "*": {"jain": 0.5}}
        write_point(writer.path, PointResult(point, "pass", metrics=metrics, records=few_packets(point, [{}] * 3)))
    write_point(writer.path, PointResult({"id": "b0", "tuples": [], "flows": FLOWS}, "broken", reason="the lab hung"))
    writer.finish(build_summary(writer.path, plan="p", started=NOW, wall_s=1, versions={}))
    return testctl.load(tmp_path / "run")


def test_one_row_a_point_and_flow(run: Run) -> None:
    points = run.points
    assert list(zip(points["point"], points["flow"], points["verdict"], strict=True)) == [
        ("a0", "bulk", "pass"), ("a0", "other", "pass"), ("a1", "bulk", "pass"), ("a1", "other", "pass"),
        ("b0", "bulk", "broken"), ("b0", "other", "broken"),
    ]  # fmt: skip
    passed = points[points["verdict"] == "pass"]
    assert list(passed["ce_marks"]) == [0, 7, 1, 7]
    assert list(passed["jain"]) == [0.5] * 4
    assert list(passed["ends.kernel"]) == ["6.1", "6.1", "6.12", "6.12"], "text: 6.10 is not 6.1"
    assert points["ce_marks"].isna().sum() == 2
    assert points.groupby("flow")["ce_marks"].max().to_dict() == {"bulk": 1, "other": 7}
    assert run.to_arrow().column("point").to_pylist() == list(points["point"])


def test_whole_numbers_are_numbers(tmp_path: Path, run: Run) -> None:
    writer = RunWriter.create_at(tmp_path / "all", need=0)
    point = {"id": "a0", "tuples": [["sender", "mtu", "1500"], ["x", "rate", "1gbit"]], "flows": FLOWS}
    write_point(writer.path, PointResult(point, "pass", metrics={"bulk": {"n": 1}}))
    writer.finish(build_summary(writer.path, plan="p", started=NOW, wall_s=1, versions={}))
    row = testctl.load(tmp_path / "all").points.iloc[0]
    assert (row["sender.mtu"], row["x.rate"], row["x.rate_bps"]) == (1500, "1gbit", 10**9)


def test_quantities_are_numbers_in_a_column_with_the_unit(tmp_path: Path) -> None:
    points = testctl.load(make_sweep(tmp_path).path).points
    assert list(dict.fromkeys(points["switch.delay"])) == ["1ms", "3ms", "10ms", "30ms"]
    assert list(dict.fromkeys(points["switch.delay_s"])) == [0.001, 0.003, 0.01, 0.03]
    assert points["switch.buffer_bytes"].max() == 250_000
    assert "hosts.cc_s" not in points


def test_a_point_without_the_parameter_has_no_number(tmp_path: Path) -> None:
    writer = RunWriter.create_at(tmp_path / "all", need=0)
    for name, tuples in (("a0", [["x", "delay", "1ms"]]), ("b0", [])):
        point = {"id": name, "tuples": tuples, "flows": FLOWS}
        write_point(writer.path, PointResult(point, "pass", metrics={"bulk": {"n": 1}}))
    writer.finish(build_summary(writer.path, plan="p", started=NOW, wall_s=1, versions={}))
    points = testctl.load(tmp_path / "all").points
    assert points["x.delay_s"].isna().tolist() == [False, True]


def test_the_points_of_all_runs_are_one_table(tmp_path: Path, run: Run) -> None:
    results = tmp_path
    later = make_sweep(results, day=3)
    assert (results / "latest").is_symlink()
    (results / "20260104T120000Z-sweep.in-progress").mkdir()
    table = testctl.load_all(results)
    assert list(dict.fromkeys(table["run"])) == [later.path.name, "run"], "oldest first"
    assert list(dict.fromkeys(table["plan"])) == ["sweep", "p"]
    assert len(table) == len(run.points) + len(testctl.load(later.path).points)
    assert table["started"].is_monotonic_increasing
    summary = later.path / "summary.json"
    summary.write_text(re.sub('"started": "[^"]*"', '"started": "yesterday"', summary.read_text(encoding="utf-8")))
    assert testctl.load_all(results)["started"].isna().sum() == len(testctl.load(later.path).points)
    summary.write_text(re.sub('"started": "[^"]*",', "", summary.read_text(encoding="utf-8")))
    assert testctl.load_all(results)["started"].isna().sum() == len(testctl.load(later.path).points)
    only = testctl.load_all(str(results), plan="p")
    assert list(only["point"]) == list(run.points["point"])
    with pytest.raises(PlanError, match=r"want complete runs of plan q; there is none"):
        testctl.load_all(results, plan="q")


def test_records_as_pandas_and_as_arrow(run: Run) -> None:
    point = run.point("a1")
    packets = point.packets(["time_ns", "where"])
    assert isinstance(packets, pd.DataFrame)
    assert packets.shape == (3, 2)
    table = point.packets(to_arrow=True)
    assert isinstance(table, pa.Table)
    assert table.schema.names == PACKETS.names
    assert point.tcp_info().empty
    assert point.flows == ("bulk", "other")
    assert run.sql().sql("select count(*) from packets").fetchall() == [(6,)]


def test_a_file_that_was_removed_is_the_reason_and_not_the_verdict(run: Run) -> None:
    point = run.point("a0")
    (point.files.path / "packets.parquet").unlink()
    with pytest.raises(
        PlanError, match=r"a0 has no records: packets\.parquet or another file of its records is not in"
    ):
        point.series("bulk", "throughput")


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda run: run.point("zz"), "'zz' names none; there are a0, a1, b0"),
        (lambda run: run.point("a0").packets(["time"]), "want columns of time_ns, where, flow, .*; got 'time'"),
        (lambda run: run.point("a0").tcp_events(), "point a0 has no tcp_events; it has packets, tcp_info"),
        (lambda run: run.point("b0").packets(), "point b0 has no packets; it is broken: the lab hung"),
        (lambda run: run.point("b0").series("bulk", "throughput"), "point b0 has no records: it is broken"),
        (lambda run: run.point("a0").series("x", "throughput"), "want a flow of bulk, other; got 'x'"),
        (lambda run: run.point("a0").series("bulk", "x"), "want a series of throughput, fairness, .*; got 'x'"),
        (lambda run: run.point("a0").series("bulk", "rtt", "1"), "bin: .*"),
        (lambda run: run.point("a0").series("bulk", "rtt", "0ns"), "bin: want at least 1ns; got '0ns'"),
        (lambda run: testctl.load("/nowhere"), "/nowhere: want the directory of a run"),
    ],
)
def test_an_error_names_what_there_is(run: Run, what: object, words: str) -> None:
    assert callable(what)
    with pytest.raises(PlanError, match=words):
        what(run)


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = "pandas", "pyarrow", "numpy", "duckdb", "scipy", "distributed", "yaml"
    code = f"import sys, testctl; print([name for name in {heavy} if name in sys.modules], callable(testctl.load))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        testctl.lod  # noqa: B018  (the attribute is what is tested)


def test_figures_are_shown_and_written_and_wrong_ones_named(tmp_path: Path) -> None:
    run = Run(make_sweep(tmp_path))
    metric, swept = "throughput_bps", [name for name in run.points.columns if "." in name]
    x = next(name for name in swept if run.points[name].nunique() > 1)
    chart = run.figure(metric, x)
    assert metric in chart.title
    assert chart.title in chart._repr_svg_()
    assert chart.save(tmp_path / "figure.svg").read_text(encoding="utf-8").startswith("<svg")
    with pytest.raises(PlanError, match="metric: want one that the points have"):
        run.figure("troughput", x)


def test_a_point_has_the_figures_of_serve(tmp_path: Path) -> None:
    point = testctl.load(make_run(tmp_path, 1)).point("loss")
    assert point.figure("seq", from_s=0.01, to_s=0.02).spec["encoding"]["x"]["scale"]["domain"] == [10**7, 2 * 10**7]
    assert "Congestion window" in point.figure("cwnd")._repr_svg_()
    with pytest.raises(PlanError, match=r"point loss: want a figure of throughput, .*; got 'window'"):
        point.figure("window")
    with pytest.raises(PlanError, match="point loss: want a connection of bulk/0; got bulk/3"):
        point.figure("seq", "bulk", 3)
    with pytest.raises(PlanError, match="want from_s below to_s; got 2 and 1"):
        point.figure("seq", from_s=2, to_s=1)
