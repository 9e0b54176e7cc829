# SPDX-License-Identifier: Apache-2.0
"""Congestion windows: what packets show of them, and what the kernel's trace does."""

from __future__ import annotations

from typing import Any

import pytest

from controller.tests.rules.conversation import HELLO, found
from controller.tests.rules.traced import FIRST, SENT, burst, events, violations

_ACK = "20000 ack open una 2000 nxt 9000 cwnd {} ssthresh 99 pipe 7 prior 9 delivered 3\n"


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
    repeated = HELLO + burst(10000, 0, 10) + "{0} a < SA ack 0 win 64000\n{0} a > A ack 0\n" + burst(31000, 10, 1)
    assert violations("initial-window", repeated.format(25000)) == 0
    assert violations("initial-window", repeated.format(31000)) == 1


@pytest.mark.parametrize(("at", "count"), [(216_000, 0), (205_000, 1)])
def test_a_probe_soon_after_new_data_is_one_where_the_first_segments_timer_is_due(at: int, count: int) -> None:
    """tcp_schedule_loss_probe(): with an RTT of 10 ms after 210 ms, less a tick."""
    text = HELLO + burst(10000, 0, 9) + burst(at - 6000, 9, 1) + burst(at, 10, 1)
    assert violations("slow-start-growth", text) == count


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


@pytest.mark.parametrize(("rtt", "cc", "most"), [(50, "hybla", 8), (50, "reno", 4), (20, "hybla", 4)])
def test_hybla_adds_more_for_each_segment_the_longer_the_rtt(rtt: int, cc: str, most: int) -> None:
    """2^(RTT / 25 ms) - 1: hybla_cong_avoid()."""
    text = f"0 a > S\n{rtt}000 a < SA ack 0\n{rtt}000 a > A ack 0\n" + burst(rtt * 1000, 0, 10)
    text += f"{2 * rtt}000 a < A ack 2000\n"
    assert violations("slow-start-growth", text + burst(2000 * rtt, 10, most), cc=cc) == 0
    assert violations("slow-start-growth", text + burst(2000 * rtt, 10, most + 1), cc=cc) == 1


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


@pytest.mark.parametrize(("cwnd", "ssthresh", "count"), [(13, 12, 0), (14, 12, 1), (13, 13, 1)])
def test_above_ssthresh_the_window_grows_by_what_was_acknowledged_before_too(
    cwnd: int, ssthresh: int, count: int
) -> None:
    """By a segment: tcp_cong_avoid_ai()."""
    sent, ack = (line.replace("ssthresh 99", f"ssthresh {ssthresh}") for line in (SENT, _ACK))
    assert violations("growth-per-ack", FIRST, trace=sent + ack.format(cwnd)) == count


@pytest.mark.parametrize(("cc", "cwnd", "count"), [("nv", 4, 0), ("nv", 5, 1), ("reno", 4, 1)])
def test_nv_has_two_segments_at_least(cc: str, cwnd: int, count: int) -> None:
    """tcpnv_acked(): before it grows."""
    sent = SENT.replace("cwnd 10", "cwnd 1")
    assert violations("growth-per-ack", FIRST, trace=sent + _ACK.format(cwnd), cc=cc) == count


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


@pytest.mark.parametrize(
    ("cc", "state", "count"), [("westwood", "open", 0), ("westwood", "cwr", 1), ("reno", "open", 1)]
)
def test_westwood_sets_ssthresh_when_a_reduction_ends(cc: str, state: str, count: int) -> None:
    """CA_EVENT_COMPLETE_CWR; the host's own queue had dropped what was sent, so that it is sent, and counts, anew."""
    first = "20000 send cwr una 0 nxt 9000 cwnd 10 ssthresh 5 pipe 5 prior 0 delivered 1\n"
    second = "21000 send cwr una 0 nxt 1000 cwnd 10 ssthresh 5 pipe 1 prior 0 delivered 1\n"
    third = f"22000 ack {state} una 1000 nxt 1000 cwnd 2 ssthresh 2 pipe 0 prior 1 delivered 2\n"
    assert violations("reduction-once", FIRST, trace=SENT + first + second + third, cc=cc) == count


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
        ("dctcp", 5, 0),
        ("dctcp", 6, 1),
        ("cubic", 7, 0),
        ("cubic", 8, 1),
        ("bic", 7, 0),
        ("scalable", 9, 0),
        ("scalable", 10, 1),
    ],
)
def test_a_loss_reduces_the_window(cc: str, ssthresh: int, count: int) -> None:
    """RFC 5681, 3.1; RFC 8257, 3.5; RFC 9438, 4.6."""
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
    late = {"a": no_rack | {"net.ipv4.tcp_reordering": 127}}
    assert found("limited-transmit", FIRST, settings=late, events=events(SENT + sent)).undecided


def test_without_a_trace_the_window_is_not_known() -> None:
    for rule in ("cwnd-respected", "growth-per-ack", "reduction-once", "reduction-at-loss", "prr-bound"):
        assert "not traced" in found(rule, FIRST).undecided


def test_segments_of_an_aggregate_count_each() -> None:
    assert violations("initial-window", HELLO + "10000 a > A 0:11000 ack 0 segs 11") == 1
    assert violations("initial-window", HELLO + "10000 a > A 0:10000 ack 0 segs 10") == 0
    text = HELLO + "10000 a > A 0:10000 ack 0 segs 10\n20000 a < A ack 2000\n20000 a > A 10000:{}000 ack 0 segs {}"
    assert violations("slow-start-growth", text.format(14, 4)) == 0
    assert violations("slow-start-growth", text.format(15, 5)) == 1
