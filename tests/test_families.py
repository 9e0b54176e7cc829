# SPDX-License-Identifier: Apache-2.0
"""IPv4 and IPv6 as values of one plan, in the lab: packet actions, telemetry, captures, samples and events of both."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import FATES

from tests.plan_runs import run_of

pytestmark = [pytest.mark.long, pytest.mark.lab]

PLAN = Path(__file__).parents[1] / "plans" / "families.yaml"
PAYLOAD = {4: 1448, 6: 1428}
HEADERS = {4: 14 + 20 + 32, 6: 14 + 40 + 32}
"""Of Ethernet, IP, and TCP with timestamps."""
AT_ONCE = """
topology: {star: {hosts: 3}}
flows: {four: h1 -> h3, six: h2 -> h3}
tuples:
  - [hosts, cc, cubic]
  - [hosts, tcp_events, on]
  - [four, family, 4]
  - [six, family, 6]
  - [switch:h3, rate, 100mbit]
  - [switch, delay, 2ms]
  - [switch, fate, "drop data 10 of four, first; drop data 10 of six, first"]
  - [flows, bytes, 300kB]
expect:
  - {name: each loses the one, metric: drops_by_fate, equals: 1}
  - {name: each arrives, metric: payload_bytes, equals: 300000}
"""
ALONE = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [bulk, family, 6]
  - [bulk, bytes, 300kB]
  - [switch:receiver, rate, 100mbit]
expect:
  - {name: it arrives, metric: payload_bytes, min: 200000}  # iperf3 may stop before it has read all
"""
BY_COMMAND = """
topology: pair
flows: {web: sender -> receiver}
tuples:
  - [web, family, 6]
  - [web, generator, command]
  - [web, server, "python3 -m http.server --bind {address} {server_port}"]
  - [web, client, "curl -sS -o /dev/null http://[{address}]:{server_port}/"]
expect:
  - {name: it is answered, metric: payload_bytes, min: 1}
"""


def seen_at(records: Records, where: str) -> dict[str, Any]:
    """Columns of the packets of one place."""
    codes, names = records.codes("where")
    mine = codes == names.index(where)
    columns = ("direction", "length", "wire_bytes", "ecn", "fate", "ordinal", "segs", "left_ns")
    return {name: records.column(name)[mine] for name in columns}


def test_a_plan_over_both_passes_on_both(tmp_path: Path) -> None:
    one = run_of(tmp_path, PLAN, out="one")
    assert len(one.points) == 8
    told = [(found["asked"], found["happened"], found["which"]) for point in one.points for found in point.fates]
    assert Counter(told) == {(1, 1, "10"): 8, (1, 1, "20"): 8}
    for point in one.points:
        records = Records.load(point.path)
        family = records.point.flows[0].family
        switch = seen_at(records, "switch")
        data = (switch["direction"] == 0) & (switch["length"] > 0)
        assert set(switch["length"][data]) >= {PAYLOAD[family]}
        assert max(switch["length"]) == PAYLOAD[family]
        assert set(switch["wire_bytes"][data] - switch["length"][data]) == {HEADERS[family]}
        fates = {FATES[fate]: ordinal for fate, ordinal in zip(switch["fate"], switch["ordinal"], strict=True) if fate}
        assert fates == {"drop": 10, "mark": 20}
        receiver = seen_at(records, "receiver")
        assert int((receiver["ecn"] == 3).sum()) == 1
        sizes = zip(*(records.tcp_info[name].to_pylist() for name in ("where", "snd_mss")), strict=True)
        assert ("sender", PAYLOAD[family]) in set(sizes)
        assert records.tcp_events is not None
        assert set(records.tcp_events["where"].to_pylist()) >= {"sender"}
        counted = records.counters["receiver"]["snmp"]
        assert (counted["Ip6.InReceives"] > 0) == (family == 6)
        assert (counted["IpExt.InOctets"] > 0) == (family == 4)
        device = records.counters["receiver"]["device"]["eth0"]
        assert device["rx_bytes"] == int(view(records, "bulk").into["wire_bytes"].sum()), "nothing else was sent"
    again = run_of(tmp_path, PLAN, "hosts.cc=cubic", out="again")
    same = {point.id: point.digest for point in again.points}
    assert len(same) == 4
    assert same == {point.id: point.digest for point in one.points if point.id in same}


def test_flows_over_ipv4_and_ipv6_at_the_same_time(tmp_path: Path) -> None:
    (point,) = run_of(tmp_path, AT_ONCE).points
    assert point.verdict == "pass", json.dumps(point.reason)
    records = Records.load(point.path)
    for table, at_h3 in ((records.tcp_info, {("h3", "four"), ("h3", "six")}), (records.tcp_events, set())):
        assert table is not None
        pairs = set(zip(table["where"].to_pylist(), table["flow"].to_pylist(), strict=True))
        assert pairs >= {("h1", "four"), ("h2", "six"), *at_h3}
        assert not pairs & {("h1", "six"), ("h2", "four")}
    assert point.outcome["addresses"]["h3"] == ["10.0.0.3", "fd00::3"]


@pytest.mark.parametrize("setting", ["switch.backend=netem", "bulk.generator=iperf3"])
def test_another_back_end_and_another_generator(tmp_path: Path, setting: str) -> None:
    (point,) = run_of(tmp_path, ALONE, setting).points
    assert point.verdict == "pass", point.reason


@pytest.mark.parametrize("family", [4, 6])
def test_the_initial_window_is_that_of_the_familys_route(tmp_path: Path, family: int) -> None:
    plan = ALONE.replace("expect:", "  - [sender, initcwnd, 3]\n  - [switch, delay, 5ms]\nexpect:")
    (point,) = run_of(tmp_path, plan, f"bulk.family={family}").points
    seen = view(Records.load(point.path), "bulk")
    acked_ns = int(seen.acks_in.where(seen.acks_in["ack"] > 0)["time_ns"].min())
    first = seen.sent.where(seen.sent["time_ns"] < acked_ns)
    assert int(first["length"].sum()) == 3 * PAYLOAD[family]


def test_a_command_gets_the_address_of_its_family(tmp_path: Path) -> None:
    (point,) = run_of(tmp_path, BY_COMMAND).points
    assert point.verdict == "pass", point.reason
