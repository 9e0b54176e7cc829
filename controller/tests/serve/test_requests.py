# SPDX-License-Identifier: Apache-2.0
"""A point with requests and without packets has figures of its completion times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from testctl.charts.requests import SLOWEST, Ended, over_time
from testctl.charts.style import LANES
from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.metrics import metric_names
from testctl.plan import load_plan
from testctl.records import PACKETS, REQUESTS, TCP_INFO, Records
from testctl.results import PointResult, RunWriter, build_summary, write_point
from testctl.serve.app import make_app

PLAN = """\
topology: pair
flows: {quiet: sender -> receiver, web: sender -> receiver, other: sender -> receiver}
tuples:
  - [switch:receiver, rate, 1gbit]
  - [switch, delay, 25us]
  - [quiet, duration, 1s]
  - [web, sizes, websearch]
  - [web, load, 0.3]
  - [web, requests, 200]
  - [other, sizes, websearch]
  - [other, load, 0.3]
  - [other, requests, 200]
"""
COUNT = 200


def requests_table() -> pa.Table:
    """Of each flow COUNT requests of 10 kB, a ms apart, that take 1 ms, but the last: 100 ms."""
    rows = []
    for flow in ("web", "other"):
        for number in range(COUNT):
            due = number * 1_000_000
            took = 100_000_000 if number == COUNT - 1 else 1_000_000
            row = dict.fromkeys(REQUESTS.names, 0) | {"flow": flow, "up": 10_000, "due_ns": due, "begin_ns": due}
            rows.append(row | {"end_ns": due + took})
    return pa.Table.from_pylist(rows, REQUESTS)


def requests_run(results: Path) -> Path:
    """The directory of the only point of a run: its requests, and a table of no packets."""
    (point,) = load_plan(PLAN, metrics=metric_names()).points
    writer = RunWriter.create(results, "web", now=datetime(2026, 1, 1, 12, 0, tzinfo=UTC))
    spec = PointSpec.from_json(point.to_json())
    records = Records(PACKETS.empty_table(), TCP_INFO.empty_table(), {}, Outcome(), spec, requests=requests_table())
    write_point(writer.path, PointResult(point.to_json(), "pass", records=records))
    summary = build_summary(writer.path, plan="web", started=datetime(2026, 1, 1, tzinfo=UTC), wall_s=1.0)
    return writer.finish(summary) / "points" / point.id


@pytest.fixture(params=["empty", "missing"])
def answer(request: pytest.FixtureRequest, tmp_path: Path, client_of: Callable[[Any], httpx.Client]) -> Any:
    """What the server says of the point: with a table of no packets, and without one."""
    point = requests_run(tmp_path)
    if request.param == "missing":
        (point / "packets.parquet").unlink()
    client = client_of(make_app(tmp_path))
    base = f"/api/runs/{point.parents[1].name}/points/{point.name}"
    return client.get(base).raise_for_status().json(), client.get(f"{base}/requests").raise_for_status().json()


def test_requests_alone_make_three_figures(answer: Any) -> None:
    page, found = answer
    assert (page["packets"], page["requests"], page["figures"]) == (0, 2 * COUNT, [])
    titles = [chart["title"] for chart in found["figures"]]
    assert titles == ["Completion times over time", "Completion times", "Slowdown by size"]
    ends = found["figures"][0]["data"]["ends"]
    assert (len(ends["ms"]), max(ends["ms"])) == (2 * COUNT, 100.0)


def test_a_flow_has_its_colour_of_the_plan(answer: Any) -> None:
    _, found = answer
    scale = found["figures"][0]["spec"]["encoding"]["color"]["scale"]
    assert scale == {"domain": ["web", "other"], "range": list(LANES[1:3])}


def test_of_many_requests_the_slowest_are_drawn() -> None:
    took = np.full(100_000, 0.001)
    took[::500] = 1.0
    chart = over_time([Ended("web", np.arange(100_000.0), took, np.full(100_000, 1000))], ["web"])
    drawn = chart.data["ends"]["ms"]
    assert len(drawn) <= 3000
    assert sum(value == 1000 for value in drawn) == SLOWEST
    assert "of 100000 requests" in chart.note


@pytest.mark.parametrize("count", [15, 16, 100])
def test_of_many_flows_each_has_requests_from_begin_to_end(count: int) -> None:
    """Beside its slowest, which are the last ones here."""
    flows = [Ended(f"f{n}", np.arange(1000.0), np.linspace(0.001, 1, 1000), np.full(1000, 1000)) for n in range(count)]
    ends = over_time(flows, [flow.name for flow in flows]).data["ends"]
    for flow in flows:
        times = [at for at, name in zip(ends["s"], ends["flow"], strict=True) if name == flow.name]
        assert (times[0], times[-1]) == (0, 999)
        assert len(times) > 3000 // count * 3 // 4
        assert sum(at < 500 for at in times) > 3000 // count // 6
