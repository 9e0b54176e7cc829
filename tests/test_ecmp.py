# SPDX-License-Identifier: Apache-2.0
"""Connections that are spread over the spines of a leaf-spine network in the lab, and background traffic of a link."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from testctl.core import routes
from testctl.execution.point import measure
from testctl.metrics.core.completions import requests_of
from testctl.metrics.core.view import view
from testctl.plan import load_plan
from testctl.results import PointResult
from testctl.temporal.samples import signal
from testctl.testbeds.lab import LabTestbed

from tests.plan_runs import records_of

pytestmark = pytest.mark.lab

PLAN = """
topology: {leaf_spine: {hosts: 4, spines: 3}}
flows: {bulk: h1 -> h3, six: h2 -> h4}
tuples:
  - [hosts, cc, cubic]
  - [hosts, tcp_info, off]
  - [six, family, 6]
  - [flows, duration, 60ms]
  - [flows, parallel, 6]
  - [leaf1-spine1, rate, 100mbit]
  - [leaf1-spine2, rate, 100mbit]
  - [leaf1-spine3, rate, 100mbit]
  - [leaf1, buffer, 60kB]
  - [spine2-leaf2, delay, 1ms]
  - [leaf1, ecmp_seed, [0, 1]]
  - [spine2, fate, drop data 3 of bulk]
"""
BACKGROUND = """
topology: dumbbell
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - [hosts, tcp_info, off]
  - [left:right, rate, 50mbit]
  - [left:right, buffer, 100kB]
  - [left-right, delay, 2ms]
  - [left:right, background, [none, 40% 20kB]]
  - [bulk, duration, 400ms]
expect:
  - {name: it is the plan's flow that is judged, metric: goodput_bps, min: 1mbit}
"""


def run(text: str, where: Path, again: int = 0) -> list[PointResult]:
    points = load_plan(text).points
    lab = LabTestbed.for_points(points)
    asked = [*points, *points[:again]]
    return [measure(lab, point, where / str(n), keep_captures=False) for n, point in enumerate(asked)]


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> list[PointResult]:
    """Both seeds, and the first one again."""
    return run(PLAN, tmp_path_factory.mktemp("spread"), again=1)


def test_each_connection_passes_the_spine_that_its_hash_gives(spread: list[PointResult]) -> None:
    """By the telemetry of the spines, IPv4 and IPv6, both ways; the seed of a leaf gives other ways."""
    taken = []
    for result in spread[:2]:
        records = records_of(result)
        assert (result.verdict, result.reason) == ("pass", "")
        where, places = records.codes("where")
        flow, flows = records.codes("flow")
        seen = {
            (flows[f], conn, way, places[at])
            for f, conn, way, at in zip(
                flow.tolist(), records.column("conn").tolist(), records.column("direction").tolist(), where.tolist(),
                strict=True,
            )
            if places[at].startswith("spine")
        }  # fmt: skip
        wanted = {
            (one.name, conn, int(back), routes.way(records.point, one, conn, back=back)[2])
            for one in records.point.flows
            for conn in range(6)
            for back in (False, True)
        }
        assert seen == wanted
        taken.append({(name, conn): spine for name, conn, back, spine in seen if not back})
    assert taken[0] != taken[1]
    assert set(taken[0].values()) == {"spine1", "spine2", "spine3"}


def test_metrics_are_those_of_the_ports_that_are_passed(spread: list[PointResult]) -> None:
    """Each of the leaf's ports is full; a hop's rate is that of the ports that the flow is spread over."""
    result = spread[0]
    records = records_of(result)
    (hop, *_) = routes.hops(records.point, records.point.flows[0])
    assert len(hop) > 1
    bulk = result.metrics["bulk"]
    assert float(bulk["saturation"]) == pytest.approx(float(bulk["throughput_bps"]) / (len(hop) * 1e8), rel=1e-6)
    assert int(bulk["packets_lost"]) == int(bulk["drops_of_data"]) > 0
    ports = str(bulk["drops_where"])
    passing = sum(len(conns) for (_, to), conns in hop.items() if to == "spine2")
    assert f"spine2:leaf2 {passing}" in ports
    assert int(bulk["drops_by_fate"]) == passing
    assert len(view(records, "bulk").sent) == int(bulk["packets_sent"])


def test_the_queue_is_that_of_the_ports_that_each_connection_passes(spread: list[PointResult]) -> None:
    records = records_of(spread[0])
    queue = signal(view(records, "bulk"), "queue")
    ports = {int(conn): queue.describe(number).rpartition(" at ")[2] for number, conn in enumerate(queue.conn)}
    assert set(ports) == set(range(6))
    bulk = records.point.flows[0]
    for conn, port in ports.items():
        assert port.partition(":")[0] in routes.way(records.point, bulk, conn)


def test_the_same_point_has_the_same_digest(spread: list[PointResult]) -> None:
    first, second, again = (records_of(result).digest() for result in spread)
    assert first == again != second


def test_background_takes_its_share_and_is_no_flow_of_the_plan(tmp_path: Path) -> None:
    alone, beside = run(BACKGROUND, tmp_path)
    assert [result.verdict for result in (alone, beside)] == ["pass", "pass"]
    records = records_of(beside)
    columns = requests_of(records, "background1")
    assert columns is not None
    assert (columns["end_ns"] > 0).all()
    assert len(columns["up"]) == round(0.4 * 50e6 / 8 / 20e3 * 0.4)
    assert np.unique(columns["up"]).tolist() == [20_000]
    shares = [float(result.metrics["bulk"]["goodput_bps"]) / 50e6 for result in (alone, beside)]
    assert shares[0] > 0.85
    assert 0.3 < shares[1] < 0.75
    assert beside.metrics["*"]["total_throughput_bps"] == pytest.approx(
        beside.metrics["bulk"]["throughput_bps"], rel=0.01
    )
