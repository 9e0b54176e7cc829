# SPDX-License-Identifier: Apache-2.0
"""Congestion windows: what packets show of them, and what the kernel's trace does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from testctl.records.schema import SENDER_COLUMNS, TCP_EVENT_NAMES, TCP_EVENTS, TCP_INFO, TCP_STATES, names_column

from controller.tests.rules.conversation import HELLO, found

FIRST = HELLO + "10000 a > A 0:1000 ack 0\n"


def burst(time_us: int, first: int, count: int) -> str:
    """Segments of 1000 bytes, at once."""
    return "".join(f"{time_us} a > A {n}000:{n + 1}000 ack 0\n" for n in range(first, first + count))


def events(text: str) -> pa.Table:
    """TIME_US EVENT STATE una N nxt N cwnd N ssthresh N pipe N prior N delivered N: a line each, of host a."""
    rows = [line.split() for line in text.strip().splitlines() if line.strip()]
    values = [dict(zip(row[3::2], map(int, row[4::2]), strict=True)) for row in rows]
    columns: dict[str, Any] = {
        "time_ns": [int(row[0]) * 1000 for row in rows],
        "conn": [0] * len(rows),
        "srtt_us": [10_000] * len(rows),
        "state": [TCP_STATES.index(row[2]) for row in rows],
        **dict.fromkeys(SENDER_COLUMNS, [-1] * len(rows)),
    }
    names = {"una": "snd_una", "nxt": "snd_nxt", "prior": "prior_pipe"}
    for name in ("una", "nxt", "cwnd", "ssthresh", "pipe", "prior", "delivered"):
        columns[names.get(name, name)] = [value.get(name, 0) for value in values]
    for name, texts in (("where", ["a"]), ("flow", ["f"]), ("source", ["kernel"])):
        columns[name] = names_column(np.zeros(len(rows), np.int64), texts)
    columns["event"] = names_column(np.array([TCP_EVENT_NAMES.index(row[1]) for row in rows]), list(TCP_EVENT_NAMES))
    return pa.table(
        [
            column if isinstance(column := columns[field.name], pa.Array) else pa.array(column, field.type)
            for field in TCP_EVENTS
        ],
        schema=TCP_EVENTS,
    )


def violations(rule: str, text: str, *, trace: str = "", cc: str = "reno", **settings: Any) -> int:
    result = found(rule, text, settings={"a": {"cc": cc, **settings}}, events=events(trace) if trace else None)
    assert not result.undecided
    return result.count


def test_the_initial_window_is_ten_segments() -> None:
    """RFC 6928, 2."""
    assert violations("initial-window", HELLO + burst(10000, 0, 10)) == 0
    assert violations("initial-window", HELLO + burst(10000, 0, 12)) == 2
    assert violations("initial-window", HELLO + burst(10000, 0, 12), initcwnd=20) == 0
    sacked = HELLO + burst(10000, 0, 10) + "20000 a < A ack 0 sack 1000:2000\n" + burst(20000, 10, 1)
    assert violations("initial-window", sacked) == 0
    probe = HELLO + burst(10000, 0, 10) + burst(31000, 10, 1)
    assert violations("initial-window", probe) == 0
    assert violations("initial-window", probe + burst(31000, 11, 1)) == 1


def test_the_initial_window_after_lost_syns_is_one_segment() -> None:
    """RFC 5681, 3.1."""
    lost = "0 a > S\n1000000 a > S\n{}2010000 a < SA ack 0 win 64000\n2010000 a > A ack 0\n" + burst(2010000, 0, 2)
    assert violations("initial-window", lost.format("2000000 a > S\n")) == 1
    assert violations("initial-window", lost.format("")) == 0


def test_the_initial_window_after_a_syn_that_was_not_lost_is_whole() -> None:
    """tcp_try_undo_spurious_syn(): the answer's timestamp is the first SYN's."""
    text = "0 a > S ts 1000/0\n1000000 a > S ts 2000/0\n2000000 a > S ts 3000/0\n2010000 a < SA ack 0 ts 9000/{}\n"
    text += "2010000 a > A ack 0\n" + burst(2010000, 0, 2)
    assert violations("initial-window", text.format(1000)) == 0
    assert violations("initial-window", text.format(3000)) == 1


@pytest.mark.parametrize(("kernel", "count"), [("6.1", 0), ("6.12", 1)])
def test_the_last_segment_may_exceed_the_window(kernel: str, count: int) -> None:
    """tcp_cwnd_test(): it carries the FIN."""
    text = HELLO + burst(10000, 0, 10) + "10000 a > FA 10000:11000 ack 0"
    assert violations("initial-window", text, kernel=kernel) == count
    assert violations("slow-start-growth", text, kernel=kernel) == count
    assert violations("initial-window", text.replace("FA", "A"), kernel=kernel) == 1
    assert violations("initial-window", text.replace("11000", "12000 segs 2"), kernel=kernel) == 1


def test_a_queue_behind_tcp_hides_the_time_of_a_probe() -> None:
    text = HELLO + burst(10000, 0, 10) + burst(13000, 10, 1)
    assert violations("initial-window", text, htb_rate=1) == 0
    assert violations("initial-window", text + burst(13000, 11, 1), htb_rate=1) == 1


def test_duplicate_acks_end_slow_start() -> None:
    """RFC 3042: each lets a segment go."""
    text = HELLO + burst(10000, 0, 10) + "20000 a < A ack 2000{0}\n" + burst(20000, 10, 4) + "21000 a < A ack 2000{1}\n"
    text += burst(21000, 14, 1)
    assert violations("slow-start-growth", text.format("", "")) == 0
    assert violations("slow-start-growth", text.format("", " win 70000")) == 1
    assert violations("slow-start-growth", text.format("", "") + "22000 a < A ack 2000 sack 3000:4000") == 1


def test_slow_start_adds_a_segment_for_each_acknowledged() -> None:
    """RFC 5681, 3.1."""
    text = HELLO + burst(10000, 0, 10) + "20000 a < A ack 2000\n"
    assert violations("slow-start-growth", text + burst(20000, 10, 4)) == 0
    assert violations("slow-start-growth", text + burst(20000, 10, 5)) == 1


def test_the_window_is_reduced_after_an_idle_time() -> None:
    """RFC 5681, 4.1: Linux halves it for each RTO."""
    grown = HELLO + burst(10000, 0, 10) + "20000 a < A ack 10000\n" + burst(20000, 10, 20) + "30000 a < A ack 30000\n"
    assert violations("restart-window", grown + burst(10_000_000, 30, 10)) == 0
    assert violations("restart-window", grown + burst(10_000_000, 30, 11)) == 1
    assert violations("restart-window", grown + burst(200_000, 30, 40)) == 0
    probe = grown + burst(10_000_000, 30, 10) + burst(10_031_000, 40, 1)
    assert violations("restart-window", probe) == 0
    assert violations("restart-window", probe + burst(10_032_000, 41, 1)) == 1
    assert found("restart-window", grown, settings={"a": {"net.ipv4.tcp_slow_start_after_idle": 0}}).undecided
    assert found("restart-window", grown, settings={"a": {"cc": "bbr"}}).undecided


def test_the_rto_is_as_long_as_timestamps_show() -> None:
    """RFC 7323, 4: of the SYN, which was sent twice."""
    text = "0 a > S ts 1000/0\n3000000 a > S ts 4000/0\n3010000 a < SA ack 0 ts 9000/{}\n3010000 a > A ack 0\n"
    text += burst(3010000, 0, 10) + "3020000 a < A ack 10000\n" + burst(4_000_000, 10, 20)
    assert violations("restart-window", text.format(1000)) == 0
    assert violations("restart-window", text.format(4000)) == 10


def test_fast_retransmit_does_not_wait_for_the_timer() -> None:
    """RFC 5681, 3.2."""
    acks = "".join(f"20000 a < A ack 0 sack 1000:{n}000\n" for n in range(2, 7))
    text = HELLO + burst(10000, 0, 8) + acks
    assert violations("fast-retransmit", text + "240000 a > A 0:1000") == 1
    assert violations("fast-retransmit", text + "20000 a > A 0:1000") == 0
    assert violations("fast-retransmit", text + "21000 a < A ack 8000\n240000 a > A 8000:9000") == 0


SENT = "10000 send open una 0 nxt 9000 cwnd 10 ssthresh 99 pipe 9 prior 8 delivered 1\n"


@pytest.mark.parametrize(("pipe", "time", "count"), [(10, 10000, 0), (11, 10000, 1), (11, 40000, 0), (12, 40000, 1)])
def test_nothing_is_sent_beyond_the_congestion_window(pipe: int, time: int, count: int) -> None:
    """RFC 5681, 3.1: but a tail loss probe, after a time."""
    sent = f"{time} send open una 0 nxt 11000 cwnd 10 ssthresh 99 pipe {pipe} prior 10 delivered 1\n"
    assert violations("cwnd-respected", FIRST, trace=SENT + sent) == count
    fin = FIRST + "20000 a > FA 10000:10999 ack 0"
    for release, broken in (("6.12", count), ("6.1", 0)):
        assert violations("cwnd-respected", fin, trace=SENT + sent, kernel=release) == broken


@pytest.mark.parametrize(("una", "count"), [(0, 0), (9000, 1)])
def test_an_ack_without_progress_does_not_delay_a_probe(una: int, count: int) -> None:
    acked = f"39000 ack open una {una} nxt 9000 cwnd 10 ssthresh 99 pipe 10 prior 10 delivered 1\n"
    sent = f"40000 send open una {una} nxt 11000 cwnd 10 ssthresh 99 pipe 11 prior 10 delivered 1\n"
    assert violations("cwnd-respected", FIRST, trace=SENT + acked + sent) == count


@pytest.mark.parametrize(("first", "count"), [(0, 0), (9000, 1)])
def test_a_probe_leaves_when_the_first_segments_timer_would_run_out(first: int, count: int) -> None:
    """However soon after the last ACK: Linux's tcp_schedule_loss_probe()."""
    acked = f"239000 ack open una {first} nxt 9000 cwnd 10 ssthresh 99 pipe 10 prior 10 delivered 1\n"
    sent = f"240000 send open una {first} nxt 11000 cwnd 10 ssthresh 99 pipe 11 prior 10 delivered 1\n"
    assert violations("cwnd-respected", FIRST, trace=SENT + acked + sent) == count


@pytest.mark.parametrize(("cwnd", "state", "count"), [(12, "open", 0), (13, "open", 1), (13, "recovery", 0)])
def test_the_window_grows_by_what_is_acknowledged(cwnd: int, state: str, count: int) -> None:
    """RFC 5681, 3.1, by the bytes of RFC 3465."""
    ack = f"20000 ack {state} una 2000 nxt 9000 cwnd {cwnd} ssthresh 99 pipe 7 prior 9 delivered 3\n"
    assert violations("growth-per-ack", FIRST, trace=SENT + ack) == count


@pytest.mark.parametrize(("ssthresh", "count"), [(99, 1), (100, 0)])
def test_an_undo_restores_the_window(ssthresh: int, count: int) -> None:
    """RFC 3708: ssthresh too."""
    ack = f"20000 ack open una 2000 nxt 9000 cwnd 20 ssthresh {ssthresh} pipe 7 prior 9 delivered 3\n"
    assert violations("growth-per-ack", FIRST, trace=SENT + ack) == count


@pytest.mark.parametrize(("cwnd", "count"), [(10, 0), (9, 1)])
def test_an_undo_may_leave_ssthresh_where_it_is(cwnd: int, count: int) -> None:
    """RFC 3708: where the loss had not lowered it."""
    reduced = "19000 ack recovery una 0 nxt 9000 cwnd 5 ssthresh 99 pipe 8 prior 9 delivered 2\n"
    ended = "19500 ack open una 1000 nxt 9000 cwnd 5 ssthresh 99 pipe 8 prior 9 delivered 3\n"
    undone = f"20000 ack open una 2000 nxt 9000 cwnd {cwnd} ssthresh 99 pipe 7 prior 9 delivered 4\n"
    assert violations("growth-per-ack", FIRST, trace=SENT + reduced + ended + undone) == count


@pytest.mark.parametrize(("state", "count"), [("open", 0), ("cwr", 1)])
def test_what_a_congestion_control_does_by_itself_is_no_reduction(state: str, count: int) -> None:
    """RFC 9406, 4.3."""
    first = f"20000 ack {state} una 0 nxt 9000 cwnd 10 ssthresh 9 pipe 8 prior 9 delivered 2\n"
    second = "21000 ack recovery una 1000 nxt 9000 cwnd 7 ssthresh 7 pipe 3 prior 9 delivered 9\n"
    assert violations("reduction-once", FIRST, trace=SENT + first + second) == count


@pytest.mark.parametrize(("una", "state", "count"), [(8999, "cwr", 1), (9000, "cwr", 0), (8999, "loss", 0)])
def test_the_window_is_reduced_once_in_a_round_trip(una: int, state: str, count: int) -> None:
    """RFC 6582, 3.2."""
    first = "20000 ack recovery una 0 nxt 9000 cwnd 5 ssthresh 5 pipe 8 prior 9 delivered 2\n"
    second = f"21000 ack {state} una {una} nxt 12000 cwnd 2 ssthresh 2 pipe 3 prior 9 delivered 9\n"
    assert violations("reduction-once", FIRST, trace=SENT + first + second) == count


@pytest.mark.parametrize(("state", "count"), [("loss", 0), ("recovery", 1)])
def test_a_lost_retransmission_after_a_timeout_reduces_the_window_again(state: str, count: int) -> None:
    """RFC 5681, 4.3."""
    first = "20000 timeout loss una 0 nxt 9000 cwnd 1 ssthresh 5 pipe 0 prior 9 delivered 2\n"
    second = f"21000 ack {state} una 1000 nxt 9000 cwnd 6 ssthresh 5 pipe 3 prior 9 delivered 3\n"
    third = "22000 ack recovery una 2000 nxt 9000 cwnd 5 ssthresh 3 pipe 3 prior 3 delivered 4\n"
    assert violations("reduction-once", FIRST, trace=SENT + first + second + third) == count


@pytest.mark.parametrize(
    ("cc", "ssthresh", "count"),
    [
        ("reno", 5, 0),
        ("reno", 6, 1),
        ("cubic", 7, 0),
        ("cubic", 8, 1),
        ("bic", 7, 0),
        ("scalable", 9, 0),
        ("scalable", 10, 1),
    ],
)
def test_a_loss_reduces_the_window(cc: str, ssthresh: int, count: int) -> None:
    """RFC 5681, 3.1; RFC 9438, 4.6."""
    ack = f"20000 ack recovery una 0 nxt 9000 cwnd 7 ssthresh {ssthresh} pipe 7 prior 9 delivered 2\n"
    assert violations("reduction-at-loss", FIRST, trace=SENT + ack, cc=cc) == count
    assert found("reduction-at-loss", FIRST, settings={"a": {"cc": "htcp"}}, events=events(SENT + ack)).undecided


def test_no_more_is_sent_in_recovery_than_was_delivered() -> None:
    """RFC 9937, 6.2: and a segment."""
    ack = "20000 ack recovery una 0 nxt 9000 cwnd 7 ssthresh 5 pipe 5 prior 9 delivered 2\n"
    again = "20000 retransmit recovery una 0 nxt 9000 cwnd 7 ssthresh 5 pipe {} prior {} delivered 2\n"
    twice = ack + again.format(6, 5) + again.format(7, 6)
    assert violations("prr-bound", FIRST, trace=SENT + twice) == 0
    assert violations("prr-bound", FIRST, trace=SENT + twice + again.format(8, 7)) == 1
    marked = ack.replace("recovery", "cwr") + ack.replace("20000", "20001").replace("delivered 2", "delivered 3")
    more = [again.format(pipe, pipe - 1).replace("delivered 2", "delivered 3") for pipe in (6, 7, 8)]
    assert violations("prr-bound", FIRST, trace=SENT + marked + "".join(more)) == 0
    anew = again.format(6, 5) + "20001 ack recovery una 1000 nxt 9000 cwnd 7 ssthresh 4 pipe 5 prior 6 delivered 9\n"
    after = "".join(again.format(pipe, pipe - 1).replace("delivered 2", "delivered 9") for pipe in (6, 7, 8))
    assert violations("prr-bound", FIRST, trace=SENT + ack + anew + after) == 0
    other = {"a": {"cc": "reno_halving"}}
    assert found("prr-bound", FIRST, settings=other, events=events(SENT + twice)).undecided


@pytest.mark.parametrize(("nxt", "count"), [(12000, 0), (13000, 1)])
def test_outstanding_data_is_at_most_the_window_and_two_segments(nxt: int, count: int) -> None:
    """RFC 3042, 2."""
    sent = f"20000 send disorder una 0 nxt {nxt} cwnd 10 ssthresh 99 pipe 10 prior 9 delivered 3\n"
    no_rack: dict[str, Any] = {"net.ipv4.tcp_recovery": 0, "kernel": "6.12"}
    assert violations("limited-transmit", FIRST, trace=SENT + sent, **no_rack) == count
    assert found("limited-transmit", FIRST, events=events(SENT + sent)).undecided


def test_without_a_trace_the_window_is_not_known() -> None:
    for rule in ("cwnd-respected", "growth-per-ack", "reduction-once", "reduction-at-loss", "prr-bound"):
        assert "not traced" in found(rule, FIRST).undecided


def test_segments_of_an_aggregate_count_each() -> None:
    assert violations("initial-window", HELLO + "10000 a > A 0:11000 ack 0 segs 11") == 1
    assert violations("initial-window", HELLO + "10000 a > A 0:10000 ack 0 segs 10") == 0
    text = HELLO + "10000 a > A 0:10000 ack 0 segs 10\n20000 a < A ack 2000\n20000 a > A 10000:{}000 ack 0 segs {}"
    assert violations("slow-start-growth", text.format(14, 4)) == 0
    assert violations("slow-start-growth", text.format(15, 5)) == 1


# -- the kernel's own numbers, next to what ACKs say -------------------------------------------------------------------

FLIGHT = HELLO + burst(10000, 0, 9)
NINE = "10000 send open una 0 nxt 9000 cwnd 10 ssthresh 99 pipe 9 prior 0 delivered 1\n"
FIRST_ACK = "20000 ack open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 8 prior 9 delivered 2\n"


def state(rule: str, packets: str, *trace: str, **settings: Any) -> int:
    return violations(
        rule, FLIGHT + "20000 a < A ack 1000\n" + packets, trace=NINE + FIRST_ACK + "".join(trace), **settings
    )


@pytest.mark.parametrize(("delivered", "count"), [(5, 0), (4, 1), (6, 1)])
def test_an_ack_delivers_what_it_acknowledges_first(delivered: int, count: int) -> None:
    """RFC 6937, 3: one segment cumulatively, and two by SACK."""
    text = "21000 a < A ack 2000 sack 4000:6000\n"
    ack = f"21000 ack disorder una 2000 nxt 9000 cwnd 11 ssthresh 99 pipe 5 prior 8 delivered {delivered}\n"
    assert state("delivered-count", text, ack) == count
    later = ack.replace("21000", "22000").replace(f"delivered {delivered}", f"delivered {delivered + 1}")
    assert state("delivered-count", text + "22000 a < A ack 2000 sack 4000:7000\n", ack, later) == count


@pytest.mark.parametrize(("packets", "delivered"), [("20500 a > A 1000:2000 ack 0\n", 4), ("", 3)])
def test_a_segment_that_came_twice_is_delivered_once_more_for_a_retransmission(packets: str, delivered: int) -> None:
    """tcp_dsack_seen()."""
    text = packets + "21000 a < A ack 2000 sack 1000:2000\n"
    for number, count in ((delivered, 0), (delivered + 1, 1)):
        ack = f"21000 ack open una 2000 nxt 9000 cwnd 11 ssthresh 99 pipe 7 prior 8 delivered {number}\n"
        assert state("delivered-count", text, ack) == count


def test_duplicate_acks_without_sack_do_not_say_what_was_delivered() -> None:
    ack = "21000 ack disorder una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 5 prior 8 delivered 9\n"
    for rule in ("delivered-count", "pipe-without-loss"):
        assert state(rule, "21000 a < A ack 1000\n", ack) == 0
        assert state(rule, "21000 a < A ack 1000 sack 4000:5000\n", ack) == 1


@pytest.mark.parametrize(("pipe", "count"), [(5, 0), (6, 1), (4, 1)])
def test_without_a_loss_the_pipe_is_what_is_outstanding(pipe: int, count: int) -> None:
    """RFC 6675, 4: what is SACKed is not."""
    text = "21000 a < A ack 2000 sack 4000:6000\n"
    ack = f"21000 ack {{}} una 2000 nxt 9000 cwnd 11 ssthresh 99 pipe {pipe} prior 8 delivered 5\n"
    assert state("pipe-without-loss", text, ack.format("disorder")) == count
    assert state("pipe-without-loss", text, ack.format("recovery")) == 0
    assert state("pipe-without-loss", "20500 a > A 1000:2000 ack 0\n" + text, ack.format("disorder")) == count
    assert state("pipe-without-loss", "20500 a > A 2000:3000 ack 0\n" + text, ack.format("disorder")) == 0


@pytest.mark.parametrize("rule", ["delivered-count", "pipe-without-loss", "srtt-follows", "slow-start-grows"])
def test_segments_of_changing_sizes_are_not_counted(rule: str) -> None:
    packets = HELLO + burst(10000, 0, 9) + "20000 a < A ack 1000\n"
    for text, probing in ((packets, 1), (packets + "21000 a > A 1000:3000 ack 0\n", 0)):
        settings = {"a": {"cc": "reno", "net.ipv4.tcp_mtu_probing": probing}}
        assert found(rule, text, settings=settings, events=events(NINE + FIRST_ACK)).undecided


@pytest.mark.parametrize(("srtt", "count"), [(11000, 0), (11002, 0), (11003, 1), (10000, 1)])
def test_an_ack_moves_srtt_by_an_eighth(srtt: int, count: int) -> None:
    """RFC 6298, 2.3: from 10 ms, at 18 ms."""
    text = FLIGHT + "28000 a < A ack 2000\n"
    table = events(NINE + "28000 ack open una 2000 nxt 9000 cwnd 12 ssthresh 99 pipe 7 prior 9 delivered 3\n")
    place = table.schema.get_field_index("srtt_us")
    moved = table.set_column(place, "srtt_us", pa.array([10_000, srtt], pa.int64()))
    for packets, wanted in ((text, count), (text.replace("28000", "27000 a > A 0:1000 ack 0\n28000"), 0)):
        assert found("srtt-follows", packets, settings={"a": {"cc": "reno"}}, events=moved).count == wanted


RECOVERY = "20000 ack recovery una 1000 nxt 9000 cwnd 7 ssthresh 5 pipe 6 prior 9 delivered 2\n"


@pytest.mark.parametrize(
    ("cwnd", "ssthresh", "count"), [(5, 5, 0), (6, 5, 0), (7, 5, 1), (4, 5, 1), (10, 5, 0), (9, 9, 0)]
)
def test_the_window_is_ssthresh_when_a_recovery_ends(cwnd: int, ssthresh: int, count: int) -> None:
    """RFC 5681, 3.2; 10: it was wrong, and undone."""
    ends = f"30000 ack open una 9000 nxt 9000 cwnd {cwnd} ssthresh {ssthresh} pipe 0 prior 1 delivered 3\n"
    assert violations("window-after-recovery", FIRST, trace=SENT + RECOVERY + ends) == count
    other = {"a": {"cc": "illinois"}}
    assert found("window-after-recovery", FIRST, settings=other, events=events(SENT + ends)).undecided


@pytest.mark.parametrize(
    ("state", "una", "ssthresh", "count"),
    [
        ("open", 8000, 50, 1),
        ("open", 9000, 50, 0),
        ("open", 8000, 99, 0),
        ("recovery", 8000, 50, 0),
        ("recovery", 9000, 50, 0),
        ("recovery", 10000, 50, 1),
        ("recovery", 10000, 25, 0),
    ],
)
def test_a_recovery_ends_where_it_began(state: str, una: int, ssthresh: int, count: int) -> None:
    """RFC 6582, 3.2; ssthresh 99: undone; 25: another began."""
    sent = SENT.replace("cwnd 10", "cwnd 100")
    begins = "20000 ack recovery una 1000 nxt 9000 cwnd 90 ssthresh 50 pipe 6 prior 9 delivered 2\n"
    more = "20000 send recovery una 1000 nxt 12000 cwnd 90 ssthresh 50 pipe 9 prior 6 delivered 2\n"
    then = f"30000 ack {state} una {una} nxt 12000 cwnd 50 ssthresh {ssthresh} pipe 3 prior 9 delivered 9\n"
    assert violations("recovery-ends", FIRST, trace=sent + begins + more + then) == count


@pytest.mark.parametrize(
    ("state", "ece", "count"),
    [("open", "E", 1), ("cwr", "E", 0), ("recovery", "E", 0), ("open", "", 0), ("cwr", "", 1)],
)
def test_a_mark_and_nothing_else_reduces_the_window_so(state: str, ece: str, count: int) -> None:
    """RFC 3168, 6.1.2."""
    hello = "0 a > SEC win 64000\n10000 a < SAE ack 0 win 64000\n10000 a > A ack 0\n"
    text = hello + burst(10000, 0, 9).replace("ack 0", "ack 0 ecn 2") + f"20000 a < A{ece} ack 1000\n"
    ack = FIRST_ACK.replace("open", state)
    assert violations("reduction-at-mark", text, trace=NINE + ack) == count
    plain = text.replace("SEC", "S").replace("SAE", "SA").replace(" ecn 2", "")
    assert violations("reduction-at-mark", plain, trace=NINE + ack) == 0


def reduced(cwnd: int, pipe: int, delivered: int, sent: int) -> int:
    """Violations at an ACK of one segment in a recovery from 100 segments to 50: so much was delivered, and sent."""
    trace = "10000 send open una 0 nxt 90000 cwnd 100 ssthresh 999 pipe 90 prior 89 delivered 1\n"
    if delivered > 1:
        window = 50 if pipe < 50 else pipe + 1 + -(-(delivered - 1) // 2)
        ssthresh = f"ssthresh 50 pipe {pipe + 1}"
        trace += f"20000 ack recovery una 0 nxt 90000 cwnd {window} {ssthresh} prior 90 delivered {delivered}\n"
        left = f"prior {pipe + 1 - sent} delivered {delivered}"
        trace += f"20000 send recovery una 0 nxt 90000 cwnd {window} {ssthresh} {left}\n"
    last = f"cwnd {cwnd} ssthresh 50 pipe {pipe} prior {pipe + 1} delivered {delivered + 1}"
    return violations("prr-window", FIRST, trace=f"{trace}30000 ack recovery una 0 nxt 90000 {last}\n")


@pytest.mark.parametrize(
    ("cwnd", "pipe", "delivered", "sent", "count"),
    [
        (81, 80, 1, 0, 0),  # the first ACK lets the retransmission go
        (80, 80, 1, 0, 1),
        (82, 80, 1, 0, 1),
        (85, 80, 20, 5, 0),  # half of what was delivered, less what was sent
        (84, 80, 20, 5, 1),
        (86, 80, 20, 5, 1),
        (41, 40, 20, 19, 0),  # below ssthresh: what the ACK delivered, and one
        (42, 40, 20, 19, 0),
        (43, 40, 20, 19, 1),
        (40, 40, 20, 19, 1),
        (50, 40, 20, 9, 0),  # at most what was delivered and not sent yet, up to ssthresh
        (51, 40, 20, 9, 1),
    ],
)
def test_in_a_reduction_the_window_follows_from_what_was_delivered(
    cwnd: int, pipe: int, delivered: int, sent: int, count: int
) -> None:
    """RFC 6937, 3."""
    assert reduced(cwnd, pipe, delivered, sent) == count


@pytest.mark.parametrize(("cwnd", "count"), [(81, 0), (80, 1), (82, 1)])
def test_an_ack_that_delivers_nothing_leaves_the_window(cwnd: int, count: int) -> None:
    sent = "10000 send open una 0 nxt 90000 cwnd 100 ssthresh 999 pipe 90 prior 89 delivered 1\n"
    begins = "20000 ack recovery una 0 nxt 90000 cwnd 81 ssthresh 50 pipe 80 prior 90 delivered 2\n"
    again = f"30000 ack recovery una 0 nxt 90000 cwnd {cwnd} ssthresh 50 pipe 79 prior 80 delivered 2\n"
    assert violations("prr-window", FIRST, trace=sent + begins + again) == count


@pytest.mark.parametrize(
    ("cwnd", "prior", "ssthresh", "count"), [(12, 10, 99, 0), (11, 10, 99, 1), (11, 9, 99, 0), (11, 10, 11, 0)]
)
def test_slow_start_adds_what_is_acknowledged(cwnd: int, prior: int, ssthresh: int, count: int) -> None:
    """RFC 5681, 3.1; 9 in flight: the window does not limit the sender."""
    sent = SENT.replace("ssthresh 99", f"ssthresh {ssthresh}")
    ack = f"20000 ack open una 2000 nxt 9000 cwnd {cwnd} ssthresh {ssthresh} pipe 7 prior {prior} delivered 3\n"
    assert violations("slow-start-grows", FIRST, trace=sent + ack) == count
    assert found("slow-start-grows", FIRST, settings={"a": {"cc": "vegas"}}, events=events(sent + ack)).undecided


@pytest.mark.parametrize(("acked", "count"), [(10, 0), (9, 0), (8, 1)])
def test_congestion_avoidance_adds_one_for_a_window(acked: int, count: int) -> None:
    """RFC 5681, 3.1: what the ACK before acknowledged beyond a window counts, one here."""
    sent = SENT.replace("cwnd 10 ssthresh 99", "cwnd 9 ssthresh 5")
    grows = "20000 ack open una 1000 nxt 99000 cwnd 10 ssthresh 5 pipe 9 prior 9 delivered 2\n"
    again = f"30000 ack open una 9000 nxt 99000 cwnd 11 ssthresh 5 pipe 9 prior 9 delivered {2 + acked}\n"
    assert violations("reno-growth", FIRST, trace=sent + grows + again) == count
    assert found("reno-growth", FIRST, settings={"a": {"cc": "cubic"}}, events=events(sent + grows)).undecided


@pytest.mark.parametrize(("time", "state", "count"), [(51, "open", 0), (52, "open", 1), (52, "disorder", 0)])
def test_a_silent_tail_is_probed(time: int, state: str, count: int) -> None:
    """RFC 8985, 7.2: two SRTTs of 10 ms, an eighth of them and five ticks of 4 ms after the ACK."""
    text = (
        FLIGHT
        + "20000 a < A ack 1000\n"
        + f"{time + 20}000 a > A 8000:9000 ack 0\n80000 a < A ack 9000 sack 8000:9000\n"
    )
    probe = f"{time + 11}000 retransmit open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 8 prior 8 delivered 2\n"
    trace = NINE.replace("10000", "19000") + FIRST_ACK.replace("open", state) + probe
    assert violations("tlp-missing", text, trace=trace) == count
    assert found("tlp-missing", text, settings={"a": {"net.ipv4.tcp_early_retrans": 0}}, events=events(trace)).undecided


@pytest.mark.parametrize(
    ("state", "sack", "count"), [("open", " sack 4000:6000", 1), ("disorder", " sack 4000:6000", 0), ("open", "", 0)]
)
def test_a_gap_that_sack_shows_is_disorder(state: str, sack: str, count: int) -> None:
    """tcp_try_keep_open()."""
    text = FLIGHT + f"20000 a < A ack 1000{sack}\n30000 a < A ack 9000 sack 8000:9000\n"
    assert violations("sacked-is-disorder", text, trace=NINE + FIRST_ACK.replace("open", state)) == count


def sample(**values: int) -> pa.Table:
    """A sample of host a, all other values 0."""
    columns = {name: pa.array([values.get(name, 0)], pa.int64()) for name in TCP_INFO.names}
    columns |= {"where": names_column(np.zeros(1, np.int64), ["a"]), "flow": names_column(np.zeros(1, np.int64), ["f"])}
    columns["conn"] = pa.array([0], pa.int16())
    return pa.table(columns, schema=TCP_INFO)


@pytest.mark.parametrize(
    ("rto", "more", "count"),
    [
        (206, {}, 0),
        (205, {}, 1),
        (218, {}, 0),
        (219, {}, 1),
        (219, {"backoff": 1}, 0),
        (219, {"state": 4}, 0),
        (219, {"rtt": 0}, 0),
    ],
)
def test_the_rto_is_srtt_and_the_minimum(rto: int, more: dict[str, int], count: int) -> None:
    """RFC 6298, 2.3, with Linux's ticks: SRTT is 10 ms."""
    values = {"time_ns": 90_000_000, "state": 1, "rtt": 10_000, "rto": 1000 * rto} | more
    text = FLIGHT + "20000 a < A ack 1000\n80000 a > A 9000:10000 ack 0\n"
    long = text.replace("20000", "60000")  # an RTT of which RTTVAR may be large
    again = text.replace("80000", "70000 a > A 1000:2000 ack 0\n80000")
    for packets, broken in ((text, count), (long, int(count and rto < 210)), (again, int(count and rto < 210))):
        assert found("rto-of-rtt", packets, samples=sample(**values)).count == broken
