# SPDX-License-Identifier: Apache-2.0
"""Recoveries written by hand: timeouts, lost retransmissions, reordering, windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from testctl.metrics import analyse
from testctl.metrics.core.view import view
from testctl.metrics.recovery import RECOVERIES, flow_recoveries, flow_walks, recoveries_table
from testctl.metrics.recovery.flow_timers import flow_timers
from testctl.metrics.recovery.state_machine import walk
from testctl.metrics.recovery.trace import traces
from testctl.records import TCP_INFO, Records
from testctl.records.schema import names_column

from controller.tests.support.synthetic import Conversation
from controller.tests.support.synthetic_recovery import MSS, Sender

Load = Callable[..., Records]


class Talk(Conversation):
    """A conversation whose ACKs are named by when they come to the sender; numbers are segments."""

    def send(self, at_us: float, segment: int, *, arrives: bool = True) -> None:
        self.data(at_us, segment * MSS, MSS, arrives=arrives)

    def gets(self, at_us: float, ack: int, *edges: int) -> None:
        self.ack(at_us - self.delay_us, ack * MSS, sacks=[edge * MSS for edge in edges])


def opening(window: int = 10, lost: tuple[int, ...] = (0,), **options: Any) -> Talk:
    """A window leaves from 1000 µs on, 10 µs apart; its ACKs are due from 2000 µs on."""
    talk = Talk(delay_us=500, **options)
    for n in range(window):
        talk.send(1000 + 10 * n, n, arrives=n not in lost)
    return talk


def three_duplicates(talk: Talk) -> None:
    """ACKs of segments 1, 2 and 3 at 2010, 2020 and 2030 µs."""
    for n in (1, 2, 3):
        talk.gets(2000 + 10 * n, 0, 1, n + 1)


def metrics(records: Records) -> dict[str, Any]:
    return analyse(records).metrics["bulk"]


def test_retransmission_lost_and_a_timeout(load: Load) -> None:
    talk = opening()
    three_duplicates(talk)
    talk.send(2031, 0, arrives=False)
    for n in range(4, 10):
        talk.gets(2000 + 10 * n, 0, 1, n + 1)
    talk.send(252_100, 0)
    talk.gets(253_100, 10)
    records = load(talk)
    fast, after = flow_recoveries(records, "bulk")
    assert (fast.entered_by, fast.exited_by, fast.timeouts, fast.limit) == ("dupacks", "timeout", 1, "")
    assert (fast.lost_retransmissions, fast.resent) == (1, 1)
    assert fast.sent == ". . R . . . . . ."
    assert fast.entry_ns == 2_030_000
    assert fast.length_ns == 252_100_000 - 2_030_000
    assert fast.silence_ns == 252_100_000 - 2_031_000
    assert (after.entered_by, after.exited_by, after.segments_sent) == ("timeout", "ack", 1)
    assert after.length_ns == 1_000_000
    got = metrics(records)
    assert (got["recoveries"], got["recovery_timeouts"], got["lost_retransmissions"]) == (1, 1, 1)
    assert got["recovery_time_mean_ms"] == pytest.approx(250.07)
    table = recoveries_table(records)
    assert table.schema == RECOVERIES
    assert table["point"].to_pylist() == [10 * MSS, 10 * MSS]


@pytest.mark.parametrize(("rto_max_ms", "timeouts"), [(1000, 1), (120_000, 0)])
def test_a_timeout_comes_no_later_than_the_longest_rto(load: Load, rto_max_ms: int, timeouts: int) -> None:
    """net.ipv4.tcp_rto_max_ms, with an RTT of 1 s."""
    talk = Talk(delay_us=500_000)
    talk.send(1000, 0)
    talk.gets(1_001_000, 1)
    for n in range(1, 5):
        talk.send(1_001_000 + 10 * n, n, arrives=False)
    talk.send(2_001_010, 1)
    talk.gets(3_001_010, 2)
    records = load(talk, own={"net.ipv4.tcp_rto_max_ms": rto_max_ms})
    assert [timer.by for timer in flow_timers(view(records, "bulk"))] == ["rto"] * timeouts


def test_timeout_while_duplicates_go_on(load: Load) -> None:
    """New data keeps duplicate ACKs coming: the timer is known by the age of the retransmission."""
    talk = opening()
    three_duplicates(talk)
    talk.send(2031, 0, arrives=False)
    at, segment = 2040.0, 10
    while at < 260_000:
        talk.send(at, segment)
        talk.gets(at + 1000, 0, 1, segment + 1)
        at, segment = at + 1010, segment + 1
    talk.send(at, 0)
    talk.gets(at + 1000, segment)
    fast, after = flow_recoveries(load(talk), "bulk")
    assert (fast.exited_by, after.entered_by, after.exited_by) == ("timeout", "timeout", "ack")


@pytest.mark.parametrize(("repaired", "count"), [(False, 2), (True, 1)])
def test_loss_beyond_the_recovery_point_begins_another_recovery_on_the_ack_that_ends_the_first(
    load: Load, repaired: bool, count: int
) -> None:
    """Segment 11 left in the recovery, was lost and sent again: is it still missing when the point is acknowledged?"""
    talk = opening()
    three_duplicates(talk)
    talk.send(2031, 0)
    for n in range(4, 10):
        talk.gets(2000 + 10 * n, 0, 1, n + 1)
        talk.send(2001 + 10 * n, n + 6, arrives=n != 5)
    talk.gets(3010, 0, 1, 11)
    for n in (12, 13, 14):
        talk.gets(3012 + n, 0, 12, n + 1, 1, 11)
    talk.send(3027, 11)
    talk.gets(3028, 0, *((11, 15) if repaired else (12, 15)), 1, 11)
    talk.gets(3031, 11, *((11, 15) if repaired else (12, 15)))
    talk.gets(4100, 16)
    records = load(talk)
    found = flow_recoveries(records, "bulk")
    assert [(recovery.entered_by, recovery.exited_by) for recovery in found] == [("dupacks", "ack")] * count
    assert [recovery.point for recovery in found][:1] == [10 * MSS]
    assert metrics(records)["recoveries"] == count


def test_lost_retransmission_after_a_timeout_begins_a_recovery(load: Load) -> None:
    """FLAG_LOST_RETRANS: what was sent again after the timeout was lost, as SACKs of later packets tell."""
    talk = opening(lost=tuple(range(10)))
    talk.send(252_000, 0)
    talk.gets(253_000, 1)
    for n in (1, 2, 3, 4, 5):
        talk.send(253_001 + n, n, arrives=n != 1)
    for n in (2, 3, 4, 5):
        talk.gets(254_000 + n, 1, 2, n + 1)
    talk.send(254_006, 1)
    talk.gets(255_006, 6)
    records = load(talk)
    assert [recovery.entered_by for recovery in flow_recoveries(records, "bulk")] == ["timeout", "dupacks"]
    assert (metrics(records)["recoveries"], metrics(records)["retransmission_timeouts"]) == (1, 1)


@pytest.mark.parametrize(("length", "entered_by"), [(900, "path_mtu"), (MSS, "early")])
def test_smaller_packets_after_an_icmp_message_are_no_fast_recovery(load: Load, length: int, entered_by: str) -> None:
    talk = opening(lost=tuple(range(10)))
    for n in range(3):
        talk.data(1500 + n, length * n, length)
    talk.gets(2510, 1)
    talk.gets(3000, 10)
    (only,) = flow_recoveries(load(talk), "bulk")
    assert only.entered_by == entered_by


@pytest.mark.parametrize(("later_us", "timeouts"), [(0, 0), (300, 1)])
def test_retransmission_at_the_moment_of_an_ack_is_the_acks(load: Load, later_us: float, timeouts: int) -> None:
    """The first four were lost; what comes of a probe of new data tells so, long after the last progress of ACKs."""
    talk = opening(lost=(0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
    talk.send(104_000, 10)
    talk.gets(303_000, 0, 10, 11)
    talk.send(303_000 + later_us + 0.001, 0)
    talk.gets(304_500, 11)
    got = metrics(load(talk, probes=True, options={"pattern": "greedy"}))
    assert (got["retransmission_timeouts"], got["recoveries"]) == (timeouts, 1 - timeouts)
    assert got["loss_probes"] == 1


def test_probe_before_the_first_sample_of_data_waits_for_two_round_trips_of_the_handshake(load: Load) -> None:
    """A standing queue makes the first ACK late: that round trip is not the one that the timer was set by."""
    talk = opening(lost=())
    talk.send(7_000, 9)
    for n in range(10):
        talk.gets(50_000 + 1000 * n, n + 1)
    records = load(talk, probes=True)
    got = metrics(records)
    assert (got["loss_probes"], got["recoveries"], got["retransmission_timeouts"]) == (1, 0, 0)


def test_timeout_with_nothing_sacked_is_no_fast_recovery(load: Load) -> None:
    talk = opening(lost=tuple(range(10)))
    talk.send(252_000, 0)
    talk.gets(253_000, 1)
    for n in range(1, 10):
        talk.send(253_001 + n, n)
        talk.gets(254_001 + 2 * n, n + 1)
    records = load(talk)
    (only,) = flow_recoveries(records, "bulk")
    assert (only.entered_by, only.exited_by, only.retransmissions) == ("timeout", "ack", 10)
    got = metrics(records)
    assert (got["recoveries"], got["recovery_sent_pattern"]) == (0, "none")
    assert np.isnan(got["recovery_time_mean_ms"])


def test_reordering_without_loss_is_no_recovery(load: Load) -> None:
    talk = opening(lost=())
    talk.gets(2010, 0, 1, 2)
    talk.gets(2020, 0, 1, 3)
    talk.gets(2030, 3)
    for n in range(3, 10):
        talk.gets(2040 + n, n + 1)
    records = load(talk)
    assert flow_recoveries(records, "bulk") == []
    assert metrics(records)["recoveries"] == 0
    walked = walk(*traces(view(records, "bulk")))
    count = len(walked.trace)
    is_ack = walked.trace.part(0, count).is_ack
    assert np.diff(walked.delivered(0, count))[is_ack[1:]].tolist() == [MSS] * 10
    assert int(walked.sacked(0, count)[-1]) == 0


def test_two_duplicates_and_a_retransmission_are_early(load: Load) -> None:
    talk = opening(4)
    talk.gets(2010, 0, 1, 2)
    talk.gets(2020, 0, 1, 3)
    talk.send(2300, 0)
    talk.gets(2400, 0, 1, 4)
    talk.gets(3300, 4)
    (only,) = flow_recoveries(load(talk), "bulk")
    assert (only.entered_by, only.dup_acks, only.sent) == ("early", 2, ". R .")


def test_tail_loss_probe_is_no_recovery_by_itself(load: Load) -> None:
    talk = opening(lost=(9,))
    for n in range(9):
        talk.gets(2010 + n, n + 1)
    talk.send(6100, 9)
    talk.gets(7100, 10)
    records = load(talk, probes=True)
    assert flow_recoveries(records, "bulk") == []
    assert len(flow_walks(records, "bulk")[0].by_timer) == 1


def test_bursts_of_a_stretched_ack(load: Load) -> None:
    talk = opening()
    talk.gets(2030, 0, 1, 4)
    talk.send(2031, 0)
    talk.gets(2090, 0, 1, 10)
    for n in range(4):
        talk.send(2091 + n, 10 + n)
    talk.gets(3031, 10)
    for n in range(10, 14):
        talk.gets(3100 + n, n + 1)
    (only,) = flow_recoveries(load(talk), "bulk")
    assert (only.sent, only.sent_first_round, only.burst_max) == ("R 4N", "R 4N", 4)
    assert (only.prr_delivered, only.prr_out, only.prr_over) == (9 * MSS, 5 * MSS, -5 * MSS)
    assert only.first_new_ns == (2091 - 2030) * 1000


def test_more_than_twice_what_was_delivered_is_said(load: Load) -> None:
    talk = opening()
    three_duplicates(talk)
    for n in range(4):
        talk.send(2031 + n, 0 if n == 0 else 9 + n)
    for n in range(4, 10):
        talk.gets(2000 + 10 * n, 0, 1, n + 1)
    talk.gets(3031, 10)
    records = load(talk)
    (only,) = flow_recoveries(records, "bulk")
    assert only.sent.split(" ")[2] == "R3N"
    assert only.prr_over == 4 * MSS - 2 * MSS
    got = metrics(records)
    assert (got["prr_bound_broken"], got["recovery_new_segments"]) == (1, 3)
    assert got["recovery_first_new_ms"] == pytest.approx(0.002)


def test_beyond_4_gigabytes(load: Load) -> None:
    records = load(Sender("prr", 20, 60, [0, 3, 21]).run().talk)
    wanted = flow_recoveries(records, "bulk")[0]
    moved = shifted(records, 2**32)
    (found,) = flow_recoveries(moved, "bulk")
    assert (found.sent, found.prr_delivered, found.pipe_entry) == (wanted.sent, wanted.prr_delivered, wanted.pipe_entry)
    assert found.point == wanted.point + 2**32


def shifted(records: Records, by: int) -> Records:
    """The same connection `by` bytes later: what came before left in large records just before it."""
    columns = {name: records.column(name).copy() for name in ("seq", "ack", "direction", "length", "retrans")}
    data, back = columns["direction"] == 0, columns["direction"] == 1
    columns["seq"][data & (columns["seq"] >= 0)] += by
    columns["ack"][back & (columns["ack"] >= 0)] += by
    table = records.packets
    for name in ("seq", "ack"):
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(columns[name]))
    for name in (name for name in table.schema.names if name.startswith("sack")):
        edge = records.column(name).copy()
        edge[edge >= 0] += by
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(edge))
    first = next(i for i in range(table.num_rows) if data[i] and columns["length"][i])
    (packet,) = table.slice(first, 1).to_pylist()
    sizes = [min(by - at, 32_000 * MSS) for at in range(0, by, 32_000 * MSS)]
    earlier = [
        packet | {"seq": n * 32_000 * MSS, "length": size, "segs": -(-size // MSS)} for n, size in enumerate(sizes)
    ]
    bridge = pa.Table.from_pylist(earlier, table.schema)
    joined = pa.concat_tables([table.slice(0, first), bridge, table.slice(first)]).unify_dictionaries()
    return Records(joined.combine_chunks(), records.tcp_info, {}, records.outcome, records.point)


def test_without_sack(load: Load) -> None:
    talk = opening()
    for n in (1, 2, 3):
        talk.gets(2000 + 10 * n, 0)
    talk.send(2031, 0)
    for n in range(4, 10):
        talk.gets(2000 + 10 * n, 0)
    talk.gets(3031, 10)
    records = load(talk)
    (only,) = flow_recoveries(records, "bulk")
    assert (only.entered_by, only.sent, only.exited_by) == ("dupacks", ". . R . . . . . .", "ack")
    assert only.limit == "no SACK: what was delivered is not known"
    assert (only.prr_delivered, only.pipe_exit, only.prr_over) == (-1, -1, -1)


def samples(*rows: tuple[int, int, int, int]) -> pa.Table:
    """tcp_info of (time_ns, ca_state, cwnd, ssthresh)."""
    time_ns, state, cwnd, ssthresh = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    given = {"time_ns": time_ns, "ca_state": state, "snd_cwnd": cwnd, "snd_ssthresh": ssthresh, "conn": 0 * time_ns}
    columns: list[Any] = []
    for field in TCP_INFO:
        if field.name in ("where", "flow"):
            columns.append(names_column(0 * time_ns, ["sender" if field.name == "where" else "bulk"]))
        else:
            columns.append(pa.array(given.get(field.name, np.full(len(rows), -1))).cast(field.type))
    return pa.Table.from_arrays(columns, schema=TCP_INFO)


def test_window_at_the_end_and_what_says_it(load: Load) -> None:
    talk = Sender("prr", 20, 60, [0]).run().talk
    (plain,) = flow_recoveries(load(talk), "bulk")
    assert (plain.window_source, plain.excess_window, plain.cwnd_exit) == ("unknown", None, 11)
    records = load(talk)
    early, late = plain.entry_ns + 50_000, plain.exit_ns - 10_000
    records.tcp_info = samples((early, 3, 18, 10))
    (by_flight,) = flow_recoveries(records, "bulk")
    assert (by_flight.window_source, by_flight.excess_window) == ("flight", 11 - 10)
    assert np.isnan(metrics(records)["recovery_excess_window_mean"])  # what was in flight is no window
    records = load(talk)
    records.tcp_info = samples((early, 3, 18, 11), (late, 3, 11, 11), (plain.exit_ns + 1, 0, 12, 11))
    (by_info,) = flow_recoveries(records, "bulk")
    assert (by_info.window_source, by_info.excess_window) == ("tcp_info", 0)
    assert metrics(records)["recovery_excess_window_p50"] == 0


def test_least_window_and_the_share_that_slow_starts(load: Load) -> None:
    records = load(Sender("prr", 20, 60, [0]).run().talk)
    (plain,) = flow_recoveries(records, "bulk")
    assert plain.cwnd_min == -1
    entry, end = plain.entry_ns, plain.exit_ns
    rows = [(entry - 1, 3, 1, 11), (entry + 50_000, 3, 7, 11), (end - 10_000, 3, 9, 11), (end + 1, 0, 2, 11)]
    records = load(Sender("prr", 20, 60, [0]).run().talk)
    records.tcp_info = samples(*rows)
    got = metrics(records)
    assert (got["recovery_cwnd_min"], got["recovery_slow_start_share"]) == (7, 1)


def test_recovery_without_new_data(load: Load) -> None:
    talk = opening()
    three_duplicates(talk)
    talk.send(2031, 0)
    talk.gets(3031, 10)
    got = metrics(load(talk))
    assert got["recovery_new_segments"] == 0
    assert np.isnan(got["recovery_first_new_ms"])
