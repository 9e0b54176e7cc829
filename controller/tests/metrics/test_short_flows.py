# SPDX-License-Identifier: Apache-2.0
"""Short flows that lose their end: how long they took, which timer repaired them, the window while they did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.metrics import analyse, tcp_events
from testctl.metrics.recovery import traced_events
from testctl.records import Records, load_raw
from testctl.records.schema import ACK, FIN

from controller.tests.rules.traced import events
from controller.tests.support.synthetic import Conversation, write_point, write_samples

MSS = 1448
RTT_US = 100_000
NO_PROBES = {"sender": {"net.ipv4.tcp_early_retrans": 0}}
ESTABLISHED, FIN_WAIT1 = 1, 4


def flow(packets: int, lost: tuple[int, ...]) -> tuple[Conversation, float]:
    """A window of packets over a round trip of 100 ms, acknowledged up to the first loss; (talk, last ACK's time)."""
    talk = Conversation(delay_us=RTT_US / 2)
    begin = RTT_US + 1000
    for n in range(packets):
        talk.data(begin + n, MSS * n, arrives=n not in lost)
    for n in range(min(lost)):
        talk.ack(begin + n + RTT_US / 2, MSS * (n + 1))
    return talk, begin + min(lost) - 1 + RTT_US


def measured(where: Path, talk: Conversation, settings: dict[str, Any] | None = None) -> dict[str, Any]:
    return analyse(load_raw(write_point(where, talk.captures(), settings=settings or {}))).metrics["bulk"]


def test_a_flow_ends_when_its_last_hole_is_filled(tmp_path: Path) -> None:
    talk, at = flow(10, lost=(7,))
    talk.data(at + 200, MSS * 7)
    talk.data(at + 90_000, MSS * 9)  # a copy of what has arrived is nothing new
    got = measured(tmp_path, talk)
    assert got["completion_time_s"] == pytest.approx((at + 200 + RTT_US / 2) / 1e6, abs=1e-6)


def test_a_timeout_shorter_than_four_round_trips(tmp_path: Path) -> None:
    talk, at = flow(10, lost=(9,))
    talk.data(at + 206_000, MSS * 9)  # 306 ms after it left
    talk.ack(at + 206_000 + RTT_US / 2, MSS * 10)
    got = measured(tmp_path, talk, NO_PROBES)
    assert (got["retransmission_timeouts"], got["loss_probes"], got["stall_count"]) == (1, 0, 0)
    assert got["timeout_length_mean_ms"] == got["timeout_length_max_ms"] == pytest.approx(206)


def test_a_probe_shorter_than_four_round_trips_beside_another_flow(tmp_path: Path) -> None:
    talk, at = flow(10, lost=(8, 9))
    talk.data(at + 202_000, MSS * 9)
    talk.ack(at + 202_000 + RTT_US / 2, MSS * 8, sacks=[MSS * 9, MSS * 10])
    records = load_raw(write_point(tmp_path, talk.captures()))
    (bulk,) = records.point.flows
    other = replace(bulk, name="other", client_port=41000, server_port=5002)
    records.point = replace(records.point, flows=(bulk, other))
    got = analyse(records).metrics["bulk"]
    assert (got["retransmission_timeouts"], got["loss_probes"]) == (0, 1)


def test_new_data_that_a_timer_or_the_application_let_go_is_not_guessed(tmp_path: Path) -> None:
    talk, at = flow(10, lost=(8, 9))
    talk.data(at + 202_000, MSS * 10)
    talk.ack(at + 202_000 + RTT_US / 2, MSS * 8, sacks=[MSS * 10, MSS * 11])
    assert np.isnan(measured(tmp_path, talk)["loss_probes"])


def test_a_timer_repairs_the_syn(tmp_path: Path) -> None:
    talk = Conversation()
    for n in range(5):
        talk.data(2_000_000 + n, MSS * n)
        talk.ack(2_000_020 + n, MSS * (n + 1))
    captures = talk.captures()
    syn = int(np.flatnonzero(captures["sender"]["flags"] & 2)[0])
    again = {name: np.insert(column, syn + 1, column[syn], axis=0) for name, column in captures["sender"].items()}
    again["time_ns"][syn] -= 10**9
    got = analyse(load_raw(write_point(tmp_path, {**captures, "sender": again}))).metrics["bulk"]
    assert (got["retransmission_timeouts"], got["timeout_length_max_ms"]) == (1, 1000)


def test_window_while_the_closed_connection_still_sends(tmp_path: Path) -> None:
    talk, at = flow(10, lost=(7, 8, 9))
    talk.data(at + 306_000, MSS * 7)
    write_point(tmp_path, talk.captures())
    states = ((1, ESTABLISHED, 0, 10), (2, FIN_WAIT1, 3, 4), (3, FIN_WAIT1, 1, 1))
    samples = {
        time * 10**5: {"state": state, "unacked": unacked, "snd_cwnd": cwnd, "rtt": 7}
        for time, state, unacked, cwnd in states
    }
    write_samples(tmp_path, samples)
    got = analyse(load_raw(tmp_path)).metrics["bulk"]
    assert (got["cwnd_mean"], got["cwnd_min"], got["cwnd_max"], got["srtt_max_us"]) == (2.5, 1, 4, 7)


@pytest.mark.parametrize("alone", [False, True])
def test_a_fin_is_a_packet_only_where_it_leaves_alone(tmp_path: Path, alone: bool) -> None:
    talk = Conversation()
    for n in range(3):
        talk.data(100 + n, MSS * n, flags=ACK | (FIN if n == 2 and not alone else 0))
    if alone:
        talk.data(103, MSS * 3, length=0, flags=ACK | FIN)
    for n in range(3):
        talk.ack(130 + n, MSS * (n + 1) + (n == 2))
    records: Records = load_raw(write_point(tmp_path, talk.captures()))
    rows = tcp_events(records, "bulk").to_pylist()
    assert [row["pipe"] for row in rows] == ([1, 2, 3, 4, 3, 2, 0] if alone else [1, 2, 3, 2, 1, 0])
    assert rows[-1]["delivered"] == (5 if alone else 4)  # the SYN counts one


@pytest.mark.parametrize(("name", "since_ns"), [("brief", 80_000_000), ("bulk", 290_000_000)])
def test_the_kernel_counts_a_fin_with_data_likewise(name: str, since_ns: int) -> None:
    """At every ACK of a real flow without loss, and at those after the recoveries of one with (timeout included)."""
    records = load_raw(Path(__file__).parent / "fixtures" / "all_instruments")
    found = []
    for table in (tcp_events(records, name), traced_events(records, name)):
        rows = [row for row in table.to_pylist() if row["event"] == "ack" and row["time_ns"] > since_ns]
        found.append([(row["time_ns"], row["snd_una"], row["snd_nxt"], row["pipe"], row["delivered"]) for row in rows])
    assert found[0] == found[1] != []


@pytest.mark.parametrize(("settings", "count"), [({}, 1), ({"sender": {"htb_rate": 300_000}}, 0)])
def test_what_tcp_holds_back_for_a_queue_of_the_host_is_no_probe(
    tmp_path: Path, settings: dict[str, Any], count: int
) -> None:
    """tcp_small_queue_check(): two segments leave as those before have left the queue, two round trips after an ACK."""
    talk = Conversation(delay_us=10_000)
    for n in range(6):
        talk.data(20_000, MSS * n)
    talk.ack(40_000, MSS)
    talk.data(90_000, MSS * 6, 2 * MSS)
    talk.ack(110_000, MSS * 8)
    write_point(tmp_path, talk.captures(), settings=settings, options={"pattern": "greedy"})
    records = load_raw(tmp_path)
    lines = "20000 send open nxt 8688 cwnd 10 pipe 6\n40000 ack open una 1448 nxt 8688 cwnd 10 pipe 5 prior 6\n"
    lines += "90000 send open una 1448 nxt 11584 cwnd 10 pipe 7 prior 5\n"
    records.tcp_events = events(lines, "sender", "bulk")
    assert analyse(records).metrics["bulk"]["loss_probes"] == count


@pytest.mark.parametrize(("state", "known"), [("open", True), ("recovery", False)])
def test_the_trace_of_the_kernel_bounds_the_probes_of_the_capture(tmp_path: Path, state: str, known: bool) -> None:
    """Behind a queue it does not tell which of two packets were probes, but that one in a recovery was none."""
    talk = Conversation(delay_us=10_000)
    for n in range(6):
        talk.data(20_000, MSS * n)
    talk.ack(40_000, MSS)
    talk.data(120_000, MSS * 6)
    talk.data(200_000, MSS * 7)
    talk.ack(220_000, MSS * 8)
    write_point(tmp_path, talk.captures(), settings={"sender": {"htb_rate": 300_000}}, options={"pattern": "greedy"})
    records = load_raw(tmp_path)
    lines = "20000 send open nxt 8688 cwnd 10 pipe 6\n40000 ack open una 1448 nxt 8688 cwnd 10 pipe 5 prior 6\n"
    lines += "120000 send open una 1448 nxt 10136 cwnd 10 pipe 6 prior 5\n"
    lines += f"200000 send {state} una 1448 nxt 11584 cwnd 10 pipe 7 prior 6\n"
    records.tcp_events = events(lines, "sender", "bulk")
    probes = float(str(analyse(records).metrics["bulk"]["loss_probes"]))
    assert probes == 2 if known else np.isnan(probes)


@pytest.mark.parametrize(("at_us", "count"), [(1_100_000, 0), (1_200_000, 1)])
def test_what_an_application_writes_before_the_timer_of_the_first_packet_is_no_probe(
    tmp_path: Path, at_us: int, count: int
) -> None:
    """Behind a second of queue the timer runs for 1.2 s, and nothing had left for 10 ms."""
    talk = Conversation(delay_us=500_000)
    for n in range(6):
        talk.data(20_000 if n < 3 else at_us - 10_000, MSS * n)
    talk.data(at_us, MSS * 6)
    write_point(tmp_path, talk.captures(), options={"pattern": "greedy"})
    records = load_raw(tmp_path)
    lines = "20000 send open nxt 4344 cwnd 10 pipe 3 srtt 1000000\n"
    lines += f"{at_us - 10_000} send open nxt 8688 cwnd 10 pipe 6 prior 3 srtt 1000000\n"
    lines += f"{at_us} send open nxt 10136 cwnd 10 pipe 7 prior 6 srtt 1000000\n"
    records.tcp_events = events(lines, "sender", "bulk")
    assert analyse(records).metrics["bulk"]["loss_probes"] == count
