# SPDX-License-Identifier: Apache-2.0
"""Requests in the lab: each begins when it came, none is faster than the path, applications and switch agree."""

from __future__ import annotations

import numpy as np
import pytest
from testctl.execution.point import measure
from testctl.metrics import completions
from testctl.metrics.core.completions import requests_of
from testctl.plan import load_plan
from testctl.results import PointResult
from testctl.testbeds.lab import LabTestbed
from testctl_agent.spec import workload

from tests.plan_runs import measured, records_of

pytestmark = pytest.mark.lab

PLAN = """topology: pair
flows: {web: sender -> receiver}
tuples:
  - [hosts, cc, [dctcp, cubic]]
  - [switch:receiver, rate, 1gbit]
  - [switch:receiver, buffer, 200kB]
  - [switch:receiver, ecn_threshold, 30kB]
  - [switch, delay, 50us]
  - [hosts, tcp_info, off]
  - [web, sizes, "0B:0 2kB:0.4 50kB:0.9 500kB:1"]
  - [web, load, 0.6]
  - [web, requests, 150]
"""
LATE_NS = 5000
"""Of a wake-up in the lab: of a few together the last one has to wait, which takes some system calls."""
SERVICES = """topology: {star: {hosts: 4}}
flows: {rpc: h1 -> h2, query: h1 -> h2, many: "h* -> h1"}
tuples:
  - [switch, rate, 1gbit]
  - [switch, delay, 20us]
  - [hosts, tcp_info, off]
  - [rpc, reverse, on]
  - [rpc, requests, 60]
  - [rpc, connections, 4]
  - [rpc, think, 2ms]
  - [rpc, sizes, keyvalue]
  - [rpc, deadline, 100us]
  - [query, reverse, on]
  - [query, fanout, 16]
  - [query, connections, 16]
  - [query, requests, 5]
  - [query, sizes, 20kB]
  - [query, arrival_rate, 100]
  - [many, requests, 5]
  - [many, arrival_rate, 100]
  - [many, sizes, 15kB]
  - [many, draw, burst]
"""
HEADERS = 66
"""Bytes of Ethernet, IP and TCP with its time stamps; a SYN has 8 more."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[PointResult]:
    """DCTCP, CUBIC, and DCTCP again."""
    points = load_plan(PLAN, metrics={}).points
    lab = LabTestbed.for_points(points)
    where = tmp_path_factory.mktemp("points")
    again = [*points, points[0]]
    return [measure(lab, point, where / str(n), keep_captures=False) for n, point in enumerate(again)]


def test_every_request_begins_when_it_came_and_ends(results: list[PointResult]) -> None:
    for result in results:
        assert (result.verdict, result.reason) == ("pass", "")
        records = records_of(result)
        columns = requests_of(records, "web")
        assert columns is not None
        drawn = workload.requests(records.point.flows[0].options, workload.stream_of(1, "web", {}))
        assert columns["up"].tolist() == [one.up for one in drawn]
        late = columns["begin_ns"] - columns["due_ns"]
        assert late.min() >= 0
        assert late.max() < LATE_NS
        assert np.array_equal(np.diff(columns["due_ns"]), np.diff([one.at_ns for one in drawn]))
        assert result.metrics["web"]["requests_completed"] == 150


def test_none_is_faster_than_the_empty_path(results: list[PointResult]) -> None:
    """A small one on a connection of its own takes three times its delay at the least: SYN, SYN with ACK, data."""
    for result in results:
        found = completions(records_of(result), "web")
        assert found is not None
        assert found.took_ns.min() > 150_000
        assert (found.slowdown > 1).all()


def test_dctcp_has_the_shorter_queue_and_the_faster_small_requests(results: list[PointResult]) -> None:
    dctcp, cubic = (result.metrics["web"] for result in results[:2])
    assert float(dctcp["slowdown_small_p95"]) < float(cubic["slowdown_small_p95"])
    assert float(dctcp["ce_marks"]) > 0 == float(cubic["ce_marks"])


def test_the_switch_forwarded_just_the_bytes_of_the_applications(results: list[PointResult]) -> None:
    records = records_of(results[0])
    port = records.counters["switch"]["device"]["receiver"]
    columns = requests_of(records, "web")
    assert columns is not None
    sent_again = int(results[0].metrics["web"]["retransmitted_bytes"])
    assert port["tx_bytes"] - HEADERS * port["tx_packets"] - 8 * 150 == int(columns["up"].sum()) + sent_again


def test_the_same_point_has_the_same_digest(results: list[PointResult]) -> None:
    dctcp, cubic, again = (records_of(result).digest() for result in results)
    assert dctcp == again != cubic


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> PointResult:
    """Answers on four connections, queries of sixteen, and three hosts that send to one at the same times."""
    return measured(tmp_path_factory.mktemp("services"), SERVICES)


def test_requests_are_answered_on_connections_that_stay(services: PointResult) -> None:
    """The first request of a connection opens it, a round trip of 80 µs; most others meet an empty path."""
    assert (services.verdict, services.reason) == ("pass", "")
    columns = requests_of(records_of(services), "rpc")
    found = completions(records_of(services), "rpc")
    assert columns is not None
    assert found is not None
    assert columns["conn"].tolist() == [number % 4 for number in range(60)]
    assert float(services.metrics["rpc"]["slowdown_all_p50"]) < 1.1
    assert (found.slowdown[:4] > 1.9).all()
    after = columns["begin_ns"][4:] - columns["end_ns"][:-4]
    drawn = workload.requests(records_of(services).point.flows[0].options, workload.stream_of(1, "rpc", {}))
    thought = after - np.array([one.think_ns for one in drawn[4:]])
    assert thought.min() >= 0
    assert thought.max() < LATE_NS


def test_what_takes_longer_than_the_deadline_is_counted(services: PointResult) -> None:
    found = completions(records_of(services), "rpc")
    assert found is not None
    assert services.metrics["rpc"]["deadline_misses"] == int((found.took_ns > 100_000).sum()) > 0
    assert np.isnan(float(services.metrics["query"]["deadline_misses"]))


def test_a_query_ends_with_its_last_request(services: PointResult) -> None:
    """Sixteen answers of 20 kB take 2.7 ms of the link, of 15 kB from three hosts at one time 0.37 ms."""
    query = services.metrics["query"]
    assert query["queries_completed"] == 5
    assert 2700 < float(query["fct_all_p999_us"]) <= float(query["query_p999_us"])
    many = [services.metrics[f"many{number}"] for number in (1, 2, 3)]
    assert [one["queries_completed"] for one in many] == [5] * 3
    assert len({one["query_p50_us"] for one in many}) == 1
    assert float(many[0]["query_p50_us"]) > 370
    due = [requests_of(records_of(services), f"many{number}") for number in (1, 2, 3)]
    assert all(one is not None for one in due)
    assert len({tuple(np.diff(one["due_ns"])) for one in due if one is not None}) == 1
