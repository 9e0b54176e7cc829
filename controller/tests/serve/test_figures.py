# SPDX-License-Identifier: Apache-2.0
"""What the figures show is what was recorded, at every zoom."""

from __future__ import annotations

import json
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

from controller.tests.serve.conftest import make_run

RUN = "20260101T120000Z-two"


def figure(client: httpx.Client, point: str, name: str, start: int, end: int, **query: Any) -> dict[str, Any]:
    given = {"from": start, "to": end, "px": 600} | query
    answer = client.get(f"/api/runs/{RUN}/points/{point}/figures/{name}", params=given)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def records(results: Path, point: str) -> Records:
    return Records.load(results / RUN / "points" / point)


def line_of(chart: dict[str, Any], label: str) -> dict[str, list[Any]]:
    """The columns of a line by the beginning of its label."""
    (found,) = (chart["data"][one["set"]] for one in chart["lines"] if one["label"].startswith(label))
    return dict(found)


@pytest.mark.parametrize("point", ["loss", "ack_owed"])
@pytest.mark.parametrize("parts", [1, 7])
def test_throughput_sums_to_the_bytes_on_the_wire(client: httpx.Client, results: Path, point: str, parts: int) -> None:
    seen = view(records(results, point), "bulk").at_sink
    last = int(seen["time_ns"][-1]) + 1
    edges = np.linspace(0, last, parts + 1).astype(int)
    for start, end in pairwise(edges.tolist()):
        line = line_of(figure(client, point, "throughput", start, end), "bulk")
        assert line["y"][-1] == line["y"][-2], "the last bin is drawn to its end"
        width = line["t"][1] - line["t"][0]
        for at, rate in zip(line["t"][:-1], line["y"], strict=False):
            if at + width <= end + (end - start) // 2 and at >= 0:  # whole within what was fetched
                inside = (seen["time_ns"] >= at) & (seen["time_ns"] < at + width)
                assert rate == pytest.approx(seen["wire_bytes"][inside].sum() * 8e9 / width, abs=1)


def test_when_packets_are_few_each_is_there(client: httpx.Client, results: Path) -> None:
    sent = view(records(results, "loss"), "bulk").sent
    middle = int(sent["time_ns"][len(sent) // 2])
    start, end = middle - 200_000, middle + 200_000
    line = line_of(figure(client, "loss", "seq", start, end), "data")
    inside = (sent["time_ns"] >= start - 200_000) & (sent["time_ns"] < end + 200_000) & ~sent["retrans"].astype(bool)
    assert line["t"] == sent["time_ns"][inside].tolist()
    assert line["y2"] == (sent["seq"] + sent["length"])[inside].tolist()
    assert line["y"] == sent["seq"][inside].tolist()
    first = f"{sent['seq'][inside][0]}:{(sent['seq'] + sent['length'])[inside][0]}"
    assert line["tip"][0].split() == [first, *(["PSH"] if sent["flags"][inside][0] & 8 else [])]


def test_every_retransmission_and_drop_is_counted(client: httpx.Client, results: Path) -> None:
    flow = view(records(results, "loss"), "bulk")
    chart = figure(client, "loss", "seq", 0, int(flow.at_sink["time_ns"][-1]) + 1)
    again = int(flow.sent["retrans"].sum())
    assert again > 0
    assert f"retransmission ({again})" in [label for label, _, _ in chart["legend"]]


def test_latency_and_round_trips_are_those_of_the_metrics(client: httpx.Client, results: Path) -> None:
    flow = view(records(results, "ack_owed"), "bulk")
    _, latency = certain_latencies(flow)
    trips = round_trips(flow)
    end = int(flow.at_sink["time_ns"][-1]) + 10**9
    values = [y for y in line_of(figure(client, "ack_owed", "latency", 0, end), "bulk")["y"] if y is not None]
    assert (max(values), min(values)) == (latency.max(), latency.min())
    values = [y for y in line_of(figure(client, "ack_owed", "rtt", 0, end), "bulk")["y"] if y is not None]
    assert max(values) == trips.rtt_ns.max()


def test_the_window_between_two_samples_is_not_empty(client: httpx.Client, results: Path) -> None:
    times = view(records(results, "loss"), "bulk").info["time_ns"]
    middle = int(times[1]) + 1_000
    chart = figure(client, "loss", "cwnd", middle, middle + 1_000)
    assert chart["lines"]
    for one in chart["lines"]:
        line = chart["data"][one["set"]]
        assert line["t"][0] < middle
        assert line["t"][-1] > middle + 1_000


def test_stalls_lead_to_their_place(client: httpx.Client, results: Path) -> None:
    page = client.get(f"/api/runs/{RUN}/points/ack_owed").json()
    assert page["stalls"]["in_all"] == len(page["stalls"]["rows"]) > 0
    stall = max(page["stalls"]["rows"], key=lambda one: one["end_ns"] - one["start_ns"])
    assert 0 <= stall["start_ns"] < stall["end_ns"] <= page["duration_ns"] * 1.1
    packets = client.get(
        f"/api/runs/{RUN}/points/ack_owed/packets", params={"from": stall["end_ns"] - 1, "to": stall["end_ns"] + 10**6}
    ).json()
    assert packets["rows"]
    times = [row["time_ns"] for row in packets["rows"]]
    assert times == sorted(times)


def test_many_may_ask_at_once(client: httpx.Client) -> None:
    asked = [(point, name, start * 1_000_000) for point in ("loss", "ack_owed") for start in range(8)
             for name in ("throughput", "seq", "latency", "cwnd")]  # fmt: skip
    alone = [figure(client, point, name, start, start + 50_000_000) for point, name, start in asked]
    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(lambda one: figure(client, one[0], one[1], one[2], one[2] + 50_000_000, px=601), asked))
    assert [one["lines"] for one in again] == [one["lines"] for one in alone]


def test_trends_have_every_run_that_has_the_point(client: httpx.Client, results: Path) -> None:
    for day in (2, 3, 4):
        make_run(results, day)
    trend = client.get("/api/trends/loss", params={"metric": "throughput_bps"}).json()
    assert [run["started"][:10] for run in trend["runs"]] == [f"2026-01-0{day}" for day in (1, 2, 3, 4)]
    assert len({run["value"] for run in trend["runs"]}) == 1
    assert trend["changes"] == []


def test_a_trend_says_where_a_new_level_begins(client: httpx.Client, results: Path) -> None:
    for day in (2, 3, 4):
        metrics = make_run(results, day) / "points" / "loss" / "metrics.json"
        if day > 2:
            values = json.loads(metrics.read_text(encoding="utf-8"))
            values["bulk"]["throughput_bps"] *= 1.01
            metrics.write_text(json.dumps(values), encoding="utf-8")
    trend = client.get("/api/trends/loss", params={"metric": "throughput_bps", "flow": "bulk"}).json()
    assert trend["changes"] == [2]
    assert trend["runs"][2]["value"] == pytest.approx(trend["runs"][1]["value"] * 1.01)


@pytest.mark.parametrize(("testbed", "changes"), [("lab", [1]), ("netns", [])])
def test_where_digests_repeat_every_difference_begins_a_level(
    client: httpx.Client, results: Path, testbed: str, changes: list[int]
) -> None:
    run = make_run(results, 2)
    metrics = run / "points" / "loss" / "metrics.json"
    values = json.loads(metrics.read_text(encoding="utf-8"))
    values["bulk"]["throughput_bps"] *= 1.01
    metrics.write_text(json.dumps(values), encoding="utf-8")
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    points = [entry | ({"metrics": values} if entry["id"] == "loss" else {}) for entry in summary.pop("points")]
    (run / "summary.json").write_text(json.dumps(summary | {"testbed": testbed, "points": points}), encoding="utf-8")
    question = {"metric": "throughput_bps", "flow": "bulk"}
    assert client.get("/api/trends/loss", params=question).json()["changes"] == changes
    (point,) = [p for p in client.get("/api/plans/two", params=question).json()["points"] if p["id"] == "loss"]
    assert point["changes"] == changes


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
