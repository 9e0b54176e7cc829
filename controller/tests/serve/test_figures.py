# SPDX-License-Identifier: Apache-2.0
"""What the figures show is what was recorded, at every zoom."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.curves import EXACT, round_width
from testctl.curves.core.thin import m4
from testctl.metrics.core.latencies import certain_latencies
from testctl.metrics.core.rtts import round_trips
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.serve.app import make_app

RUN = "20260101T120000Z-two"


@pytest.fixture
def app(results: Path, client_of: Callable[[Any], httpx.Client]) -> httpx.Client:
    """A client of a server over the results."""
    return client_of(make_app(results))


def figure(app: httpx.Client, point: str, name: str, start: int, end: int, **query: Any) -> dict[str, Any]:
    given = {"from": start, "to": end, "px": 600} | query
    answer = app.get(f"/api/runs/{RUN}/points/{point}/figures/{name}", params=given)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def records(results: Path, point: str) -> Records:
    return Records.load(results / RUN / "points" / point)


@pytest.mark.parametrize("point", ["loss", "ack_owed"])
@pytest.mark.parametrize("parts", [1, 7])
def test_throughput_sums_to_the_bytes_on_the_wire(app: httpx.Client, results: Path, point: str, parts: int) -> None:
    seen = view(records(results, point), "bulk").at_sink
    last = int(seen["time_ns"][-1]) + 1
    edges = np.linspace(0, last, parts + 1).astype(int)
    for start, end in pairwise(edges.tolist()):
        data = figure(app, point, "throughput", start, end)
        (line,) = data["lines"]
        bins = line["t0"] + start + np.arange(len(line["y"])) * line["dt"]
        for at, rate, least, most in zip(
            bins, line["y"], line.get("least", line["y"]), line.get("most", line["y"]), strict=True
        ):
            if at + line["dt"] <= end + (end - start) // 2 and at >= 0:  # whole within what was fetched
                inside = (seen["time_ns"] >= at) & (seen["time_ns"] < at + line["dt"])
                assert rate == pytest.approx(seen["wire_bytes"][inside].sum() * 8e9 / line["dt"], abs=1)
            assert least <= rate + 1
            assert rate <= most + 1


def test_when_packets_are_few_each_is_there(app: httpx.Client, results: Path) -> None:
    flow = view(records(results, "loss"), "bulk")
    sent = flow.sent
    middle = int(sent["time_ns"][len(sent) // 2])
    start, end = middle - 200_000, middle + 200_000
    data = figure(app, "loss", "seq", start, end)
    assert data["bucket_ns"] == 0
    (line,) = (one for one in data["lines"] if one["name"] == "data")
    inside = (sent["time_ns"] >= start - 200_000) & (sent["time_ns"] < end + 200_000) & ~sent["retrans"].astype(bool)
    assert [t + start for t in line["t"]] == sent["time_ns"][inside].tolist()
    assert line["y"] == (sent["seq"] + sent["length"])[inside].tolist()
    assert line["length"] == sent["length"][inside].tolist()


def test_every_retransmission_and_drop_is_counted(app: httpx.Client, results: Path) -> None:
    found = records(results, "loss")
    flow = view(found, "bulk")
    data = figure(app, "loss", "seq", 0, int(flow.at_sink["time_ns"][-1]) + 1)
    rows = {line["name"]: line["rows"] for line in data["lines"]}
    assert rows["retransmission"] == int(flow.sent["retrans"].sum()) > 0
    assert rows["ACK"] == len(flow.acks_in)


def test_latency_and_round_trips_are_those_of_the_metrics(app: httpx.Client, results: Path) -> None:
    flow = view(records(results, "ack_owed"), "bulk")
    _, latency = certain_latencies(flow)
    trips = round_trips(flow)
    end = int(flow.at_sink["time_ns"][-1]) + 10**9
    (line,) = figure(app, "ack_owed", "latency", 0, end)["lines"]
    assert (line["rows"], max(line["y"]), min(line["y"])) == (len(latency), latency.max(), latency.min())
    (line,) = figure(app, "ack_owed", "rtt", 0, end)["lines"]
    assert (line["rows"], max(line["y"])) == (len(trips.rtt_ns), trips.rtt_ns.max())


def test_the_window_between_two_samples_is_not_empty(app: httpx.Client, results: Path) -> None:
    times = view(records(results, "loss"), "bulk").info["time_ns"]
    middle = int(times[1]) + 1_000
    lines = figure(app, "loss", "cwnd", middle, middle + 1_000)["lines"]
    assert lines
    for line in lines:
        assert line["t"][0] < 0
        assert line["t"][-1] > 1_000


def test_stalls_lead_to_their_place(app: httpx.Client, results: Path) -> None:
    page = app.get(f"/api/runs/{RUN}/points/ack_owed").json()
    assert page["stalls"]["in_all"] == len(page["stalls"]["rows"]) > 0
    stall = max(page["stalls"]["rows"], key=lambda one: one["end_ns"] - one["start_ns"])
    assert 0 <= stall["start_ns"] < stall["end_ns"] <= page["duration_ns"] * 1.1
    packets = app.get(
        f"/api/runs/{RUN}/points/ack_owed/packets", params={"from": stall["end_ns"] - 1, "to": stall["end_ns"] + 10**6}
    ).json()
    assert packets["rows"]
    times = [row["time_ns"] for row in packets["rows"]]
    assert times == sorted(times)


def test_many_may_ask_at_once(app: httpx.Client) -> None:
    asked = [(point, name, start * 1_000_000) for point in ("loss", "ack_owed") for start in range(8)
             for name in ("throughput", "seq", "latency", "cwnd")]  # fmt: skip
    alone = [figure(app, point, name, start, start + 50_000_000) for point, name, start in asked]
    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(lambda one: figure(app, one[0], one[1], one[2], one[2] + 50_000_000, px=601), asked))
    assert [len(one["lines"]) for one in again] == [len(one["lines"]) for one in alone]
    assert [[line["rows"] for line in one["lines"]] for one in again] == [
        [line["rows"] for line in one["lines"]] for one in alone
    ]


def test_trends_have_every_run_that_has_the_point(
    app: httpx.Client, results: Path, runs_of: Callable[[Path, int], Path]
) -> None:
    for day in (2, 3, 4):
        runs_of(results, day)
    trend = app.get("/api/trends/loss", params={"metric": "throughput_bps"}).json()
    assert [run["started"][:10] for run in trend["runs"]] == [f"2026-01-0{day}" for day in (1, 2, 3, 4)]
    assert len({run["value"] for run in trend["runs"]}) == 1
    assert trend["changes"] == []


def test_a_trend_says_where_a_new_level_begins(
    app: httpx.Client, results: Path, runs_of: Callable[[Path, int], Path]
) -> None:
    for day in (2, 3, 4):
        metrics = runs_of(results, day) / "points" / "loss" / "metrics.json"
        if day > 2:
            values = json.loads(metrics.read_text(encoding="utf-8"))
            values["bulk"]["throughput_bps"] *= 1.01
            metrics.write_text(json.dumps(values), encoding="utf-8")
    trend = app.get("/api/trends/loss", params={"metric": "throughput_bps", "flow": "bulk"}).json()
    assert trend["changes"] == [2]
    assert trend["runs"][2]["value"] == pytest.approx(trend["runs"][1]["value"] * 1.01)


@given(seed=st.integers(0, 2**32), longest=st.integers(1, 5_000), buckets=st.integers(50, 300))
def test_m4_keeps_every_extreme_and_the_ends_of_each_bucket(seed: int, longest: int, buckets: int) -> None:
    rng = np.random.default_rng(seed)
    t, y = rng.integers(0, longest, EXACT + 1).cumsum(), rng.integers(-50, 50, EXACT + 1).cumsum()
    end = int(t[-1]) + 1
    width = -(-end // buckets)
    index = m4(t, y, 0, width)
    assert (np.diff(index) > 0).all()
    found_t, found_y = t[index], y[index]
    bucket, kept = t // width, found_t // width
    assert set(bucket) == set(kept)
    for one in set(bucket.tolist()):
        mine, own = y[bucket == one], found_y[kept == one]
        assert len(own) <= 4
        assert (own[0], own[-1], own.min(), own.max()) == (mine[0], mine[-1], mine.min(), mine.max())


@given(ns=st.integers(1, 10**15))
def test_round_widths(ns: int) -> None:
    width = round_width(ns)
    assert ns <= width <= max(2.5 * ns, 1)
    assert str(width).rstrip("0") in ("1", "2", "5")
