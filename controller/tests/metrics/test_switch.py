# SPDX-License-Identifier: Apache-2.0
"""Metrics that take a switch's telemetry, and what they fall back to."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.curves import series
from testctl.metrics import analyse
from testctl.records import Records, load_raw
from testctl.records.schema import Array
from testctl_agent.spec import schedule, trace
from testctl_agent.spec.units import Rate

from agents.tests.switch.changing_link import ChangingLink
from controller.tests.support.synthetic import T0_NS, Conversation, bulk, write_point
from controller.tests.support.synthetic_telemetry import OFFSET_NS, befall, passage, write_telemetry

START_NS = T0_NS - OFFSET_NS
"""Of the traffic, by the switch's clock."""
LINKS = [["sender", "left"], ["left", "right"], ["right", "receiver"]]


def point(tmp_path: Path, captures: dict[str, Any], telemetry: dict[str, dict[str, Array]]) -> Records:
    write_point(tmp_path, captures, settings={"left:right": {"rate": 10**9}})
    path = tmp_path / "point.json"
    document = json.loads(path.read_text()) | {"topology": {"switches": ["left", "right"], "links": LINKS}}
    path.write_text(json.dumps(document))
    for switch, switched in telemetry.items():
        write_telemetry(tmp_path, switched, switch=switch)
    return load_raw(tmp_path)


def test_loss_and_drops_are_what_the_switches_dropped(tmp_path: Path) -> None:
    captures = bulk(1000)
    left, right = passage(captures["sender"]), passage(captures["sender"])
    data, acks = np.flatnonzero(left["kind"] == 1), np.flatnonzero(left["kind"] == 2)
    befall(left, "drop", data[:4])
    befall(left, "buffer_drop", data[10:13])
    befall(right, "lose", data[20:21])
    befall(right, "other_drop", acks[:2])
    got = analyse(point(tmp_path, captures, {"left": left, "right": right})).metrics["bulk"]
    assert (got["packets_sent"], got["packets_lost"], got["loss_rate"]) == (1000, 8, 0.008)
    assert (got["drops"], got["drops_of_data"], got["drops_of_acks"]) == (10, 8, 2)
    assert (got["drops_by_fate"], got["drops_by_full_buffer"], got["drops_otherwise"]) == (5, 3, 2)
    assert got["drops_where"] == "left:right 7, right:receiver 1, right:left 2"


def test_without_telemetry_of_the_whole_way_loss_is_by_captures(tmp_path: Path) -> None:
    talk = Conversation()
    for n in range(20):
        talk.data(100 + n, 1448 * n, arrives=n != 5)
    talk.data(400, 1448 * 5)
    talk.ack(420, 1448 * 20)
    captures = talk.captures()
    got = analyse(point(tmp_path, captures, {"left": passage(captures["sender"])})).metrics["bulk"]
    assert (got["packets_sent"], got["packets_lost"]) == (21, 1)
    assert math.isnan(float(got["drops"]))  # what the other switch dropped is not known


def test_queue_and_latency_of_the_port_with_the_longest_queue(tmp_path: Path) -> None:
    captures = bulk(1000)
    count = len(captures["sender"]["time_ns"])
    left = passage(captures["sender"], latency_ns=3000, queue_bytes=np.arange(count))
    right = passage(captures["sender"], latency_ns=1000, queue_bytes=7)
    records = point(tmp_path, captures, {"left": left, "right": right})
    got = analyse(records).metrics["bulk"]
    depth = np.sort(left["queue_bytes"][left["kind"] == 1])
    assert got["switch_queue_where"] == "left:right"
    assert got["switch_queue_mean_bytes"] == pytest.approx(depth.mean())
    assert (got["switch_queue_p99_bytes"], got["switch_queue_max_bytes"]) == (depth[989], depth[-1])
    assert (got["switch_latency_mean_us"], got["switch_latency_max_us"]) == (2.0, 3.0)
    found = series(records, "bulk", "queue", 0)
    assert {"left:right", "right:receiver"} < set(found["place"].to_pylist())


def test_wait_is_what_is_neither_delay_nor_sending(tmp_path: Path) -> None:
    """A packet of 1514 bytes takes 12.112 us of the left port, the only one with a rate; the right port is not one."""
    captures = bulk(1000)
    left, right = (passage(captures["sender"], latency_ns=latency) for latency in (12_112, 90_000))
    data = np.flatnonzero(left["kind"] == 1)
    left["departure_ns"][data[:500]] += 7000
    got = analyse(point(tmp_path, captures, {"left": left, "right": right})).metrics["bulk"]
    assert (got["switch_wait_p50_us"], got["switch_wait_p99_us"], got["switch_wait_max_us"]) == (0.0, 7.0, 7.0)
    assert (got["switch_wait_mean_us"], got["switch_wait_where"]) == (3.5, "left:right")


@pytest.mark.parametrize(
    "rate",
    [
        "2gbit; 12ms 300mbit; 13ms 0bit; 15ms 1500mbit",
        "900mbit; 11ms 0bit; 11500us 2gbit",
        "500mbit; 13ms none; 15ms 1gbit",
    ],
)
def test_wait_where_the_rate_changes(tmp_path: Path, rate: str) -> None:
    """Beside a link that counts bit by bit: a packet waits until the one before it has been sent.

    Of the one that is being sent when the rate becomes unlimited it is not known when it began.
    """
    captures = bulk(1000)
    left, right = (passage(captures["sender"], latency_ns=0) for _ in range(2))
    link, free, waits = ChangingLink([(step.at_ns, step.value) for step in schedule.steps_of(rate, Rate)]), 0, []
    for at in np.flatnonzero(left["kind"] == 1):
        came = int(left["arrival_ns"][at]) - START_NS
        done, _, _ = link.send(came, 1514)
        assert done is not None
        waits.append(max(0, free - came))
        free, left["departure_ns"][at] = done, done + START_NS
    records = point(tmp_path, captures, {"left": left, "right": right})
    records.point = replace(records.point, settings={"left:right": {"rate": rate}})
    got = analyse(records).metrics["bulk"]
    assert got["switch_wait_max_us"] == pytest.approx(max(waits) / 1e3, abs=0.5)
    assert got["switch_wait_p50_us"] == pytest.approx(sorted(waits)[499] / 1e3, abs=0.01)
    assert got["switch_wait_mean_us"] == pytest.approx(np.mean(waits) / 1e3, abs=0.002)
    assert got["switch_wait_where"] == "left:right"


def test_wait_for_the_opportunity_of_a_trace_and_none_where_the_delay_changes(tmp_path: Path) -> None:
    captures = bulk(1000)
    left, right = (passage(captures["sender"], latency_ns=latency) for latency in (5000, 0))
    records = point(tmp_path, captures, {"left": left, "right": right})
    for more, wanted in (({}, 5.0), ({"delay": 2000}, 3.0), ({"delay": "1ms; 1s 5ms"}, math.nan)):
        port = {"rate": trace.show(range(1, 1000)), **more}
        records.point = replace(records.point, settings={"left:right": port})
        records.memo.clear()
        assert analyse(records).metrics["bulk"]["switch_wait_max_us"] == pytest.approx(wanted, nan_ok=True)


def test_marks_by_a_threshold(tmp_path: Path) -> None:
    captures = bulk(1000)
    switched = passage(captures["sender"], queue_bytes=0)
    data = np.flatnonzero(switched["kind"] == 1)
    switched["queue_bytes"][data] = np.arange(1000) * 100
    befall(switched, "queue_mark", data[300:])
    befall(switched, "buffer_drop", data[999:])
    switched["ecn_in"][data[998]] = switched["ecn_out"][data[998]] = 0
    switched["fate"][data[998]] = 0
    befall(switched, "mark", data[:1])
    got = analyse(point(tmp_path, captures, {"left": switched, "right": passage(captures["sender"])})).metrics["bulk"]
    assert (got["queue_marks"], got["queue_marked_min_bytes"], got["queue_unmarked_max_bytes"]) == (698, 30_000, 29_900)
