# SPDX-License-Identifier: Apache-2.0
"""Which columns of a point's packets its figures read, and that a point read in parts shows the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from testctl.curves import Window, figure
from testctl.metrics.core.view import view
from testctl.records.schema import SACK_EDGES
from testctl.serve import source
from testctl.serve.source import Source, read_source

POINT = "20260101T120000Z-two/points/loss"


def every_figure(found: Source) -> list[dict[str, Any]]:
    """Of the whole point and of a part where each packet is shown, again and again."""
    assert found.records is not None
    end = found.duration_ns
    middle = int(found.records.values("time_ns", np.array([found.count // 2]))[0])
    windows = [Window(0, end, 600), Window(middle - 200_000, middle + 200_000, 600), Window(0, end, 601)]
    return [figure(found.records, name, found.lanes[0], window) for window in windows for name in found.figures]


def test_lines_beside_packets_are_read_where_each_packet_is_shown(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testctl.curves.core.figure.EXACT", 50)
    found = read_source(results / POINT)
    assert found.records is not None
    beside = {("packets", name) for name in (*SACK_EDGES, "window", "flags")}
    lane, end = found.lanes[0], found.duration_ns
    before = beside & set(found.records.memo)
    whole = figure(found.records, "seq", lane, Window(0, end, 600))
    assert whole["bucket_ns"] > 0
    assert {line["name"] for line in whole["lines"]}.isdisjoint({"SACK block", "window"})
    assert beside & set(found.records.memo) <= before | {("packets", "flags")}
    monkeypatch.setattr("testctl.curves.core.figure.EXACT", 3000)
    near = figure(found.records, "seq", lane, Window(0, end, 600))
    assert near["bucket_ns"] == 0
    assert beside <= set(found.records.memo)


def test_a_point_read_in_parts_shows_the_same(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = every_figure(read_source(results / POINT))
    path = results / POINT / "packets.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=100)
    monkeypatch.setattr(source, "IN_PARTS", 10)
    found = read_source(results / POINT)
    assert found.records is not None
    assert found.records.in_parts
    assert every_figure(found) == whole


def test_of_a_point_read_in_parts_no_whole_column_stays(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "IN_PARTS", 10)
    found = read_source(results / POINT)
    assert found.records is not None
    flow = view(found.records, "bulk")
    assert flow.out.index.dtype == np.int32
    assert not [key for key in found.records.memo if key[0] in ("packets", "codes")]
    figure(found.records, "latency", found.lanes[0], Window(0, found.duration_ns, 600))
    assert {key[0].__name__ for key in found.records.memo} <= {"flows_drawn", "lanes", "figures", "_lines"}


def test_the_first_point_imports_nothing_large(results: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from testctl.curves import Window
from testctl.serve.point import Points
import testctl.serve.server
before = set(sys.modules)
points = Points(Path({str(results)!r}))
page = points.page("latest", "loss")
for name in page["figures"]:
    points.figure("latest", "loss", name, Window(0, page["duration_ns"], 600), "")
large = ("pandas", "pyarrow.dataset", "matplotlib", "duckdb")
print(page["packets"], [name for name in set(sys.modules) - before if name.startswith(large)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packets, imported = done.stdout.split(" ", 1)
    assert int(packets) > 100
    assert imported == "[]\n"


def test_a_curve_of_a_point_read_in_parts_is_made_once(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "IN_PARTS", 10)
    found = read_source(results / POINT)
    every_figure(found)
    assert found.records is not None
    read: list[str] = []
    monkeypatch.setattr("testctl.curves.core.figure.EXACT", 4)
    end = found.duration_ns
    monkeypatch.setattr(source.Columns, "_numbers", lambda self, group, name, index: read.append(name))
    monkeypatch.setattr(source.Columns, "column", lambda self, name: read.append(name))
    for name in found.figures:
        figure(found.records, name, found.lanes[0], Window(0, end, 602), 10**6)
    assert read == []
