# SPDX-License-Identifier: Apache-2.0
"""Metrics of made-up traffic have exactly the values that were made up."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from testctl.core.topology import Topology
from testctl.metrics import Number, analyse, oscillation
from testctl.records import Records, load_raw
from testctl.records.schema import ACK, AE, CWR, ECE, FIN
from testctl_agent.spec import trace

from controller.tests.support.synthetic import T0_NS, Conversation, bulk, frames, joined, write_point


def values(tmp_path: Path, captures: dict[str, Any], **given: Any) -> dict[str, Any]:
    return analyse(load_raw(write_point(tmp_path, captures, **given))).metrics["bulk"]


def test_steady_flow(tmp_path: Path) -> None:
    got = values(
        tmp_path, bulk(20_000, rate_bps=1e9), settings={"sender": {"htb_rate": 10**9}, "switch": {"rate": 10**10}}
    )
    assert got["wire_bytes"] == 20_000 * 1514 + 74
    assert got["payload_bytes"] == 20_000 * 1448
    assert got["latency_mean_us"] == got["latency_p999_us"] == got["latency_max_us"] == 5000
    assert (got["rtt_p50_us"], got["packets_lost"], got["retransmissions"]) == (10001.0, 0, 0)
    assert got["capacity_bps"] == 1e9
    assert got["saturation"] == pytest.approx(1, abs=0.001)
    assert got["throughput_bps"] == pytest.approx((19_999 * 1514) * 8 / got["active_s"])
    assert got["stability_cv_10ms"] < 0.001
    assert (got["stall_count"], got["retransmission_timeouts"]) == (0, 0)
    assert math.isnan(got["oscillation_period_ms"])
    assert got["completion_time_s"] == pytest.approx(got["active_s"] + 0.015020, abs=1e-6)


def test_stability_is_the_deviation_of_all_bins(tmp_path: Path) -> None:
    talk = Conversation()
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.exponential(400, 600)) + 100
    for n, at in enumerate(times):
        talk.data(float(at), 100 * n, 100)
    records = load_raw(write_point(tmp_path, talk.captures()))
    got = analyse(records).metrics["bulk"]
    arrived = (records.column("length") > 0) & ~records.column("out")
    at = records.column("time_ns")[arrived]
    start, end = int(at[0]), int(at[-1])
    start += (end - start) // 10
    for width, bin_ns in (("10ms", 10**7), ("1ms", 10**6), ("10us", 10**4)):
        count = (end - start) // bin_ns
        dense, _ = np.histogram(at[at < start + count * bin_ns], start + bin_ns * np.arange(count + 1))
        dense = dense * 166 * 8e9 / bin_ns
        assert got[f"stability_std_{width}"] == pytest.approx(dense.std(), rel=1e-3)
        assert got[f"stability_cv_{width}"] == pytest.approx(dense.std() / dense.mean(), rel=1e-3)


def test_what_arrives_after_the_sender_stopped_is_no_instability(tmp_path: Path) -> None:
    """Its buffer's last bytes, of one of two connections, wait 40 ms for an ACK that is late."""
    first, last = Conversation(conn=0), Conversation(conn=1)
    for n in range(1000):
        (first, last)[n % 2].data(100 + 400 * n, 1448 * (n // 2))
    last.data(440_000, 1448 * 500)
    captures = {where: joined([first.captures()[where], last.captures()[where]]) for where in ("sender", "receiver")}
    got = values(tmp_path, captures, parallel=2, options={"parallel": 2, "duration": 400_000_000})
    assert got["stability_cv_10ms"] == 0
    assert got["stability_cv_100ms"] == 0
    assert got["active_s"] == pytest.approx(0.4399)


def test_of_two_connections_that_take_turns_the_sum_alone_is_steady(tmp_path: Path) -> None:
    """Each sends for 20 ms while the other stalls."""
    both = Conversation(conn=0), Conversation(conn=1)
    sent = [0, 0]
    for n in range(1000):
        conn = n // 50 % 2
        both[conn].data(100 + 400 * n, 1448 * sent[conn])
        sent[conn] += 1
    captures = {where: joined([one.captures()[where] for one in both]) for where in ("sender", "receiver")}
    got = values(tmp_path, captures, parallel=2, options={"parallel": 2, "duration": 400_000_000})
    assert got["stability_cv_10ms"] == 0
    assert got["connection_stability_mean_cv_10ms"] == pytest.approx(1, abs=0.01)
    assert got["connection_stability_worst_cv_10ms"] == pytest.approx(1, abs=0.06)
    assert got["connection_stability_mean_cv_10ms"] < got["connection_stability_worst_cv_10ms"]


def test_the_stability_of_a_flows_only_connection_is_the_flows(tmp_path: Path) -> None:
    talk = Conversation()
    for n in range(1000):
        talk.data(100 + 400 * n + 150 * (n % 7), 1448 * n)
    got = values(tmp_path, talk.captures())
    for width in ("100ms", "10ms", "1ms"):
        assert got[f"connection_stability_mean_cv_{width}"] == got[f"stability_cv_{width}"]
        assert got[f"connection_stability_worst_cv_{width}"] == got[f"stability_cv_{width}"]


def test_swing_has_its_period(tmp_path: Path) -> None:
    parts, seq, at = [], 0, 1000
    for _ in range(60_000):
        rate = 1.0 + 0.8 * math.sin(2 * math.pi * at / 40e6)
        parts.append((at, seq))
        seq += 1448
        at += int(12_000 / rate)
    times, seqs = np.array(parts).T
    data = frames(len(parts), sport=40000, dport=5001, time_ns=T0_NS + times, seq=1 + seqs, length=1448)
    got = values(tmp_path, {"sender": data, "receiver": {**data, "time_ns": data["time_ns"] + 5000}})
    assert got["oscillation_period_ms"] == pytest.approx(40, abs=1)
    assert got["oscillation_strength"] > 0.9
    assert got["oscillation_amplitude_bps"] == pytest.approx(0.8e9 * 1514 / 1500, rel=0.05)


@hypothesis.given(
    on_ms=st.integers(5, 250),
    off_ms=st.integers(5, 250),
    sparse=st.sampled_from([40, 400, 4000]),
    start=st.integers(0, 20),
)
@hypothesis.settings(max_examples=40)
def test_the_period_of_on_and_off_is_theirs_and_no_multiple(on_ms: int, off_ms: int, sparse: int, start: int) -> None:
    """At rates of 300 to 3 packets a 10 ms, after a slow start that is as much as all later swings are."""
    period_us = 1000 * (on_ms + off_ms)
    times = np.arange(0, 30 * period_us, sparse)
    times = times[times % period_us < 1000 * on_ms]
    burst = np.linspace(0, period_us, len(times) * start // 30 + 1, dtype=np.int64)
    times = np.sort(np.concatenate([burst, times + period_us]))
    with TemporaryDirectory() as scratch:
        seqs = 1448 * np.arange(len(times))
        data = frames(len(times), sport=40000, dport=5001, time_ns=T0_NS + 1000 * times, seq=1 + seqs, length=1448)
        write_point(Path(scratch), {"sender": data, "receiver": {**data, "time_ns": data["time_ns"] + 5000}})
        got = oscillation.compute(load_raw(Path(scratch)), "bulk")
    strength = float(got["oscillation_strength"])
    assert not strength > 1
    if strength >= 0.5:  # not hidden: a period of fewer than two bins is
        assert got["oscillation_period_ms"] == pytest.approx(on_ms + off_ms, rel=0.03)


def test_a_short_period_is_found_in_a_part_of_a_long_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bins of 1 ms of hours, looked at where a period has few of 100 ms, would take gigabytes."""
    talk = Conversation()
    for n in range(1500):
        talk.data(1000 + 130_000 * (n // 5) + 100 * (n % 5), 1448 * n)
    records = load_raw(write_point(tmp_path, talk.captures(), options={"bytes": 1448 * 1500}))
    want = oscillation.compute(records, "bulk")
    monkeypatch.setattr(oscillation, "_MAX_BINS", 1000)
    sizes = []
    rfft = np.fft.rfft
    monkeypatch.setattr(np.fft, "rfft", lambda values, size: sizes.append(size) or rfft(values, size))
    got = oscillation.compute(records, "bulk")
    assert got["oscillation_period_ms"] == pytest.approx(130, abs=1)
    assert got["oscillation_period_ms"] == pytest.approx(want["oscillation_period_ms"], abs=0.5)
    assert len(sizes) > 1
    assert max(sizes) <= 4 * 10 * 1000


def test_packets_that_are_days_apart_have_no_oscillation(tmp_path: Path) -> None:
    """As one damaged time stamp makes them: a bin for each 100 ms of those days would take gigabytes."""
    talk = Conversation()
    for n in range(40):
        talk.data(100 + 1e6 * n + (864e9 if n > 30 else 0), 1448 * n)
    got = analyse(load_raw(write_point(tmp_path, talk.captures(), options={"bytes": 1448 * 40}))).metrics["bulk"]
    assert got["packets_sent"] == 40
    assert math.isnan(got["oscillation_amplitude_bps"])


def test_loss_and_its_repair(tmp_path: Path) -> None:
    talk = Conversation(delay_us=100)
    for n in range(10):
        talk.data(1000 + 10 * n, 1448 * n, arrives=n not in (3, 4))
    for n in range(3):
        talk.ack(1100 + 10 * n, 1448 * (n + 1))
    for n in range(5, 10):
        talk.ack(1100 + 10 * n, 1448 * 3, sacks=[1448 * 5, 1448 * (n + 1)])
    talk.data(1270, 1448 * 3)
    talk.data(1271, 1448 * 4)
    talk.ack(1370, 1448 * 4)
    talk.ack(1371, 1448 * 10)
    got = values(tmp_path, talk.captures())
    assert (got["packets_sent"], got["packets_lost"]) == (12, 2)
    assert got["loss_rate"] == 2 / 12
    assert (got["retransmissions"], got["retransmitted_bytes"]) == (2, 2896)
    assert got["payload_bytes"] == 14480
    assert (got["rtt_max_us"], got["latency_max_us"]) == (200, 100)
    assert (got["retransmission_timeouts"], got["loss_probes"], got["stall_count"]) == (0, 0, 0)


def test_spurious_retransmission_is_no_loss_and_counts_once_as_goodput(tmp_path: Path) -> None:
    talk = Conversation()
    talk.data(100, 0)
    talk.data(110, 0)
    talk.ack(130, 1448)
    talk.data(150, 1448)
    got = values(tmp_path, talk.captures())
    assert (got["packets_lost"], got["retransmissions"], got["payload_bytes"]) == (0, 1, 2896)


def test_packets_under_way_at_the_end_are_not_lost(tmp_path: Path) -> None:
    captures = bulk(100)
    captures["receiver"] = {name: column[:-40] for name, column in captures["receiver"].items()}
    got = values(tmp_path, captures)
    assert got["packets_lost"] == 0


def test_what_was_acknowledged_after_the_receivers_capture_ended_is_not_lost(tmp_path: Path) -> None:
    captures = bulk(100)
    captures["receiver"] = {name: column[:2] for name, column in captures["receiver"].items()}  # the handshake
    assert values(tmp_path / "answered", captures)["packets_lost"] == 0
    unanswered = captures["sender"]["time_ns"] < captures["sender"]["time_ns"][2:102].min() + 9_000_000
    captures["sender"] = {name: column[unanswered] for name, column in captures["sender"].items()}
    assert values(tmp_path / "black hole", captures)["packets_lost"] == 100


def test_merged_arrivals_have_the_latency_of_the_merged_packet(tmp_path: Path) -> None:
    talk = Conversation()
    for n in range(4):
        talk.data(100 + 10 * n, 1448 * n, arrives=False)
    captures = talk.captures()
    at = T0_NS + 200_000
    merged = frames(2, sport=40000, dport=5001, time_ns=[at, at + 1000], seq=[1001, 1001 + 2896], ack=78, length=2896)
    captures["receiver"] = joined([captures["receiver"], merged])
    got = values(tmp_path, captures)
    assert (got["latency_max_us"], got["latency_mean_us"]) == (100, (100 + 90 + 81 + 71) / 4)
    assert got["wire_bytes"] == 74 + 4 * 1514


def test_nothing_captured_gives_no_numbers_and_no_error(tmp_path: Path) -> None:
    got = values(tmp_path, {})
    assert math.isnan(got["throughput_bps"])
    plan = {"capacity_bps", "random_loss_rate", "failure"}
    assert {name for name, value in got.items() if value == value} <= plan


def test_data_may_flow_against_the_flows_direction(tmp_path: Path) -> None:
    captures = bulk(1000)
    turned = {
        where: {**seen, "src": 1 - seen["src"], "sport": seen["dport"], "dport": seen["sport"]}
        for where, seen in (("sender", captures["receiver"]), ("receiver", captures["sender"]))
    }
    got = values(tmp_path, turned)
    assert got["payload_bytes"] == 1000 * 1448
    assert got["latency_mean_us"] == 5000


def test_fairness(tmp_path: Path) -> None:
    records = load_raw(write_point(tmp_path, bulk(1000)))
    assert analyse(records).metrics["*"]["jain"] == 1
    (bulk_flow,) = records.point.flows
    idle = replace(bulk_flow, name="idle")
    point = replace(records.point, flows=(bulk_flow, idle))
    two = Records(records.packets, records.tcp_info, {}, records.outcome, point)
    got: dict[str, Number] = analyse(two).metrics["*"]
    assert got["jain"] == 0.5  # one got all, one that was captured nothing
    point = replace(records.point, flows=(bulk_flow, replace(idle, sink="another")))
    unseen = Records(records.packets, records.tcp_info, {}, records.outcome, point)
    assert math.isnan(float(analyse(unseen).metrics["*"]["jain"]))
    assert math.isnan(float(analyse(unseen).metrics["*"]["total_throughput_bps"]))


def test_saturation_counts_what_the_link_counts(tmp_path: Path) -> None:
    """A link that is never idle is used up, whatever it counts of a packet and however its rate is given."""
    records = load_raw(write_point(tmp_path, bulk(1000, rate_bps=1514 * 8 * 1000, delay_ns=5_000_000)))
    records.point = replace(records.point, topology=Topology(links=(("sender", "switch"), ("switch", "receiver"))))
    front = trace.show([*range(1, 2000), 20_000])  # one opportunity a ms, and then none for 18 s
    for given, wanted in (
        ({"rate": 1514 * 8000}, 1514 * 8000),
        ({"rate": 1538 * 8000, "framing": 24}, 1538 * 8000),
        ({"rate": front, "delay": 5_000_000}, 1504 * 8000),
        ({"rate": f"{1514 * 8000}bit; 1500ms 0bit; 20s {1514 * 8000}bit"}, 1514 * 8000),
        ({"rate": 10**9, "aqm": f"policer rate {1514 * 8000}bit burst 15kB"}, 1514 * 8000),
        ({"rate": 1514 * 16_000, "down": "0ms-505ms"}, pytest.approx(1514 * 8000, rel=0.02)),
    ):
        records.point = replace(records.point, settings={"switch:receiver": given})
        records.memo.clear()
        got = analyse(records).metrics
        assert got["bulk"]["capacity_bps"] == wanted
        assert got["bulk"]["saturation"] == pytest.approx(1, abs=0.02 if "down" in given else 1e-3)
        assert got["*"]["total_saturation"] == got["bulk"]["saturation"]


def test_capacity_takes_the_ports_that_data_leaves_by(tmp_path: Path) -> None:
    records = load_raw(write_point(tmp_path, bulk(100)))
    topology = Topology(links=(("sender", "switch"), ("switch", "receiver")))
    for given, wanted in (
        ({"switch:receiver": {"rate": 10**8}, "switch:sender": {"rate": 10**6}, "switch": {"rate": 10**9}}, 1e8),
        ({"switch": {"rate": 10**9}, "sender": {"htb_rate": "none"}}, 1e9),
        ({"other": {"rate": 5}, "sender": {"htb_rate": 2 * 10**9}}, 2e9),
    ):
        records.point = replace(records.point, topology=topology, settings=given)
        records.memo.clear()
        assert analyse(records).metrics["bulk"]["capacity_bps"] == wanted


CHAIN = Topology(links=(("sender", "left"), ("left", "right"), ("right", "receiver")))


def test_a_time_too_short_for_a_share_has_none(tmp_path: Path) -> None:
    """A small packet waits behind a large one at the second link: less time is between them than at the first."""
    talk = Conversation()
    talk.data(100, 0, 1448)
    talk.data(126.8, 1448, 1)
    records = load_raw(write_point(tmp_path, talk.captures()))
    rates = {"left:right": {"rate": 8 * 10**6}, "right:receiver": {"rate": 20 * 10**6}}
    records.point = replace(records.point, topology=CHAIN, settings=rates)
    got = analyse(records).metrics
    assert math.isnan(float(got["bulk"]["saturation"]))
    assert math.isnan(float(got["*"]["total_saturation"]))


def test_what_is_hidden_at_later_links_makes_no_share_above_one(tmp_path: Path) -> None:
    """1000 packets at the rate of the first link, the last one closer by what the first waited at the second."""
    captures = bulk(1000, rate_bps=1514 * 8 * 1000)
    captures["receiver"]["time_ns"][2] += 500_000
    records = load_raw(write_point(tmp_path, captures))
    rates = {"left:right": {"rate": 1514 * 8 * 1000}, "right:receiver": {"rate": 1514 * 8 * 2000}}
    records.point = replace(records.point, topology=CHAIN, settings=rates)
    got = analyse(records).metrics
    assert got["bulk"]["saturation"] == got["*"]["total_saturation"] == 1


def test_a_time_that_is_a_ns_short_makes_no_share_above_one(tmp_path: Path) -> None:
    captures = bulk(1000, rate_bps=1514 * 8 * 500)
    last = np.flatnonzero(captures["receiver"]["src"] == 0)[-1]
    captures["receiver"]["time_ns"][last] -= 1
    records = load_raw(write_point(tmp_path, captures))
    topology = Topology(links=(("sender", "switch"), ("switch", "receiver")))
    settings = {"switch:receiver": {"rate": 1514 * 8 * 500}}
    records.point = replace(records.point, topology=topology, settings=settings)
    assert analyse(records).metrics["bulk"]["saturation"] == 1


@pytest.mark.parametrize(
    ("rate", "wanted"),
    [
        ("2mbit; 10s 3mbit", 2e6),
        ("9mbit; 100us 2mbit; 10s 9mbit", 2e6),
        (trace.show([1, 2, 3, 4]), 1504 * 8000),
    ],
)
def test_capacity_at_an_instant_is_that_of_then(tmp_path: Path, rate: str, wanted: float) -> None:
    talk = Conversation()
    talk.data(100, 0, 1)
    records = load_raw(write_point(tmp_path, talk.captures()))
    topology = Topology(links=(("sender", "switch"), ("switch", "receiver")))
    settings = {"sender": {"htb_rate": 10**8}, "switch:receiver": {"rate": rate}}
    records.point = replace(records.point, topology=topology, settings=settings)
    assert analyse(records).metrics["bulk"]["capacity_bps"] == wanted


def test_a_fin_is_not_counted_among_those_with_ece(tmp_path: Path) -> None:
    talk = Conversation()
    for n in range(4):
        talk.data(100 + n, 1448 * n)
        talk.ack(200 + n, 1448 * (n + 1), flags=ACK | ECE)
    talk.ack(300, 4 * 1448, flags=ACK | FIN)
    assert values(tmp_path, talk.captures())["ece_fraction"] == 1


@pytest.mark.parametrize(
    ("offer", "answer", "echoed"),
    [
        (AE | CWR | ECE, AE, False),  # both agree: the SYN came with ECT(0)
        (AE | CWR | ECE, CWR, False),
        (AE | CWR | ECE, ECE, True),  # the other end has RFC 3168 alone
        (CWR | ECE, ECE, True),
        (AE | CWR | ECE, AE | ECE, True),  # the old nonce
    ],
)
def test_echoes_are_counted_only_where_the_flag_is_one(tmp_path: Path, offer: int, answer: int, echoed: bool) -> None:
    talk = Conversation()
    talk.seen["sender"][0]["flags"] |= offer
    talk.seen["receiver"][0]["flags"] |= offer
    for where in ("sender", "receiver"):
        talk.seen[where][1]["flags"] |= answer
    for n in range(4):
        talk.data(100 + n, 1448 * n)
        talk.ack(120 + n, 1448 * (n + 1), flags=ACK | ECE)
    got = values(tmp_path, talk.captures())
    assert got["ece_fraction"] == 1 if echoed else math.isnan(got["ece_fraction"])


def test_acks_are_those_without_payload_and_what_reached_each_end(tmp_path: Path) -> None:
    talk = Conversation()
    for n in range(6):
        talk.data(100 + n, 1448 * n)
    talk.ack(120, 1448 * 2)
    talk.ack(130, 1448 * 4, arrives=False)
    talk.ack(140, 1448 * 6)
    talk.ack(150, 1448 * 6, flags=ACK | 1)  # a FIN
    got = values(tmp_path, talk.captures())
    assert (got["acks_sent"], got["acks_received"], got["packets_per_ack"]) == (3, 2, 2)
    assert (got["mss_wire_bytes"], math.isnan(got["mss_max_bytes"]), math.isnan(got["notsent_max_bytes"])) == (
        1448,
        True,
        True,
    )
