# SPDX-License-Identifier: Apache-2.0
"""What Linux does under settings and on paths that few plans have, and where each rule begins again to speak."""

from __future__ import annotations

from typing import Any

import pytest
from testctl.records.schema import TCP_LIMITS

from controller.tests.rules.conversation import HELLO, found
from controller.tests.rules.test_kernel_state import ACKED, BEGAN, FIRST_ACK, FRTO, LOST, NINE, SPURIOUS
from controller.tests.rules.traced import FIRST, SENT, burst, events, violations

FLIGHT = HELLO + burst(10000, 0, 9)


def test_a_window_has_grown_by_what_one_ack_acknowledged_though_less_than_half_of_it_is_used() -> None:
    """tcp_is_cwnd_limited(): 10 segments, up to 29 of window, halved once."""
    text = HELLO + burst(10000, 0, 10) + "20000 a < A ack 10000\n"
    assert violations("restart-window", text + burst(240_000, 10, 14)) == 0
    assert violations("restart-window", text + burst(240_000, 10, 15)) == 1


@pytest.mark.parametrize(("una", "count"), [(9000, 0), (9001, 1)])
def test_a_probe_that_was_sent_again_lasts_until_more_than_it_is_acknowledged(una: int, count: int) -> None:
    """RFC 8985, 7.4.2: until then it is not known which of the two arrived."""
    text = FLIGHT + "80000 a < A ack 9000 sack 8000:9000\n"
    probe = "31000 retransmit open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 9 prior 8 delivered 2\n"
    ack = f"32000 ack open una {una} nxt 12000 cwnd 12 ssthresh 99 pipe 7 prior 9 delivered 3\n"
    late = f"90000 ack open una {una} nxt 12000 cwnd 12 ssthresh 99 pipe 7 prior 7 delivered 3\n"
    before = "10000 ack open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 9 prior 9 delivered 2\n"
    assert violations("tlp-missing", text, trace=before + probe + ack + late) == count


@pytest.mark.parametrize(("time", "count"), [(20, 0), (19, 1)])
def test_a_probe_comes_with_the_rto_of_the_first_segment_if_that_is_sooner(time: int, count: int) -> None:
    """tcp_schedule_loss_probe(); SRTT is 10 ms."""
    text = FLIGHT + "95000 a < A ack 9000 sack 8000:9000\n"
    before = "10000 ack open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 9 prior 9 delivered 2\n"
    probe = f"{time}000 send open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 9 prior 8 delivered 2\n"
    late = "90000 ack open una 1000 nxt 9000 cwnd 12 ssthresh 99 pipe 7 prior 7 delivered 3\n"
    again = late.replace("90000", "75000")
    assert violations("tlp-missing", text, trace=before + probe + again + late) == count


def test_what_was_sent_again_before_a_recovery_may_have_arrived_the_first_time() -> None:
    """tcp_rack_advance(): its RTT is the original's, and what was sent between is not late by it."""
    text = ACKED + "{}20400 a < A ack 1000 sack 2000:5000\n" + LOST + "23000 a > A 9000:10000 ack 0\n"
    first = "21000 ack recovery una 1000 nxt 9000 cwnd 7 ssthresh 5 pipe 6 prior 6 delivered 6\n"
    ack = "22000 ack recovery una 1000 nxt 9000 cwnd 7 ssthresh 5 pipe 5 prior 6 delivered 7\n"
    trace = NINE + FIRST_ACK + BEGAN + first + ack
    assert violations("rack-pipe", text.format(""), trace=trace) == 1
    assert violations("rack-pipe", text.format("20200 a > A 1000:2000 ack 0\n"), trace=trace) == 0


@pytest.mark.parametrize(("again", "count"), [(23000, 0), (22900, 1)])
def test_timestamps_show_a_shorter_rtt_where_all_was_sent_again(again: int, count: int) -> None:
    """tcp_ack_update_rtt(): 3 ms, in ticks of 1 ms; no segment is measured otherwise."""
    text = FLIGHT.replace("ack 0\n", "ack 0 ts 1010/5000\n").replace("SA ack 0 ts 1010/5000", "SA ack 0 ts 5000/1000")
    text += "14000 a > A 0:1000 ack 0 ts 1014/5000\n17000 a < A ack 1000 ts 5007/1014\n"
    text += "20000 a > A 1000:2000 ack 0 ts 1020/5007\n" + "22900 a < A ack 1000 ts 5011/1020 sack 2000:6000\n"
    text += f"{again} a > A 1000:2000 ack 0 ts 1023/5011\n"
    assert violations("rack-too-early", text) == count


def test_hybla_grows_with_the_rtt() -> None:
    grows = "20000 ack open una 1000 nxt 9000 cwnd 14 ssthresh 99 pipe 8 prior 9 delivered 2\n"
    settings = {"a": {"cc": "hybla"}}
    assert found("growth-per-ack", FIRST, settings=settings, events=events(SENT + grows)).undecided
    assert violations("growth-per-ack", FIRST, trace=SENT + grows) == 1


@pytest.mark.parametrize(("rtt_us", "cc", "count"), [(100_000, "hybla", 0), (99_000, "hybla", 1), (100_000, "reno", 3)])
def test_hyblas_first_window_is_the_rtt_in_25_ms(rtt_us: int, cc: str, count: int) -> None:
    text = HELLO.replace("10000 a", f"{rtt_us} a") + burst(rtt_us, 0, 4)
    for rule in ("initial-window", "slow-start-growth"):
        assert violations(rule, text, initcwnd=1, cc=cc) == count


def test_the_first_ack_raises_bbrs_window_to_four_segments() -> None:
    """bbr_cwnd_min_target."""
    text = HELLO + burst(10000, 0, 1) + "20000 a < A ack 1000\n" + burst(20000, 1, 5)
    assert violations("slow-start-growth", text, initcwnd=1) == 3
    assert violations("slow-start-growth", text, initcwnd=1, cc="bbr") == 0
    assert violations("slow-start-growth", text + burst(20000, 6, 1), initcwnd=1, cc="bbr") == 1


def test_acks_that_overtake_each_other_do_not_tell_what_was_delivered() -> None:
    text = ACKED + "20500 a < A ack 3000\n{}22000 a < A ack 4000\n"
    first = "20500 ack open una 3000 nxt 9000 cwnd 11 ssthresh 99 pipe 6 prior 8 delivered 4\n"
    ack = "22000 ack open una 4000 nxt 9000 cwnd 11 ssthresh 99 pipe 5 prior 8 delivered 4\n"
    trace = NINE + FIRST_ACK + first + ack
    assert violations("delivered-count", text.format(""), trace=trace) == 1
    assert violations("delivered-count", text.format("21000 a < A ack 2000 sack 6000:7000\n"), trace=trace) == 0


def test_an_ack_beyond_a_block_of_what_was_sent_again_measures_nothing() -> None:
    """FLAG_RETRANS_DATA_ACKED: the time stamp is taken instead, in ms."""
    text = FLIGHT + "20000 a < A ack 1000\n20500 a > A 2000:3000 ack 0\n21000 a < A ack 1000 sack 2000:3000\n"
    text += "28000 a < A ack 3000\n"
    acks = "20000 ack open una 1000 nxt 9000 cwnd 12 ssthresh 99 pipe 8 prior 9 delivered 2 srtt 10000\n"
    acks += "28000 ack open una 3000 nxt 9000 cwnd 12 ssthresh 99 pipe 6 prior 9 delivered 4 srtt {}\n"
    for srtt in (11000, 19000):
        assert violations("srtt-follows", text, trace=NINE + acks.format(srtt)) == 0
        plain = text.replace("20500 a > A 2000:3000 ack 0\n", "")
        assert violations("srtt-follows", plain, trace=NINE + acks.format(srtt)) == int(srtt == 19000)


def test_what_a_peer_that_prunes_makes_of_a_sender_is_not_judged() -> None:
    """RFC 2018, 8: SACK blocks that do not hold look like losses without any evidence."""
    pruned: dict[str, Any] = {"counters": {"b": {"snmp": {"TcpExt.OfoPruned": 1}}}}
    text = FLIGHT + "21000 a > A 0:1000"
    assert found("rtx-without-evidence", text).count == 1
    assert found("rtx-without-evidence", text, **pruned).undecided
    assert found("growth-per-ack", FIRST, events=events(SENT), **pruned).undecided


@pytest.mark.parametrize(
    ("limit", "count"), [("cwnd", 1), ("application", 0), ("send_buffer", 0), ("receiver_window", 0)]
)
def test_a_sender_with_nothing_new_that_fits_sends_again_what_was_lost(limit: str, count: int) -> None:
    """tcp_process_loss(): what the kernel says after the retransmission."""
    line = next(line for line in FRTO.splitlines() if line.startswith("250000 retransmit"))
    trace = FRTO.replace(line, f"{line} limited {TCP_LIMITS.index(limit)}")
    assert violations("frto-new-data", SPURIOUS, trace=trace) == count


def test_a_timestamp_behind_a_burst_may_be_ahead_by_the_pace_before_the_last() -> None:
    """The last burst left as soon as an ACK came, the one before by its pace."""
    hello = HELLO.replace("a > S win 64000", "a > S win 64000 ts 1000/0")
    talk = hello.replace("a > A ack 0", "a > A ack 0 ts 1010/5000") + "10000 a > A 0:1000 ack 0 ts 1010/5000\n"
    talk += "14000 a > A 1000:2000 ack 0 ts 1014/5000\n14100 a > A 2000:3000 ack 0 ts 1014/5000\n"
    assert found("timestamp-clock", talk + "14200 a > A ack 0 ts 1022/5000").count == 0
    assert found("timestamp-clock", talk + "14200 a > A ack 0 ts 1030/5000").count == 1


@pytest.mark.parametrize(("time", "count"), [(31, 0), (30, 1)])
def test_a_probe_may_leave_behind_duplicate_acks(time: int, count: int) -> None:
    """Without RACK its timer goes on: tcp_schedule_loss_probe(); SRTT is 10 ms."""
    acks = "20000 ack disorder una 0 nxt 9000 cwnd 7 ssthresh 99 pipe 7 prior 8 delivered 3\n"
    probe = f"{time}000 send disorder una 0 nxt 10000 cwnd 7 ssthresh 99 pipe 8 prior 7 delivered 3\n"
    settings = {"kernel": "6.12", "net.ipv4.tcp_recovery": 0}
    assert violations("limited-transmit", FLIGHT, trace=NINE + acks + probe, **settings) == count
    again = probe.replace("nxt 10000", "nxt 11000")
    assert violations("limited-transmit", FLIGHT, trace=NINE + acks + again, **settings) == 1


@pytest.mark.parametrize(("time", "count"), [(810, 1), (811, 0)])
def test_an_rto_is_of_what_timestamps_measure_too(time: int, count: int) -> None:
    """tcp_ack_update_rtt(): of 20 ms it is 60 ms, with 220 ms of what was sent again 275, less a tick of 4."""
    hello = "0 a > S ts 1000/0\n20000 a < SA ack 0 ts 5000/1000\n20000 a > A ack 0 ts 1020/5000\n"
    text = hello + "20000 a > A 0:1000 ack 0 ts 1020/5000\n320000 a > A 0:1000 ack 0 ts 1320/5000\n"
    text += "540000 a < A ack 1000 ts 5100/1320\n540000 a > A 1000:2000 ack 0 ts 1540/5100\n"
    text += "540000 a > A 2000:3000 ack 0 ts 1540/5100\n"
    assert violations("rto-by-rtt", text + f"{time}000 a > A 1000:2000 ack 0 ts 1999/5100\n") == count


@pytest.mark.parametrize(("time", "count"), [(2257, 1), (2258, 0)])
def test_the_deviation_grows_by_an_eighth_as_much_while_the_rtt_falls(time: int, count: int) -> None:
    """tcp_rtt_estimator(): of 300 ms and 20, SRTT is 265 ms and RTTVAR 154, and not 182; less a tick of 4."""
    hello = "0 a > S\n300000 a < SA ack 0\n300000 a > A ack 0\n"
    text = hello + "1380000 a > A 0:1000 ack 0\n1380000 a > A 1000:2000 ack 0\n"
    text += "1380000 a > A 2000:3000 ack 0\n1400000 a < A ack 1000\n"
    assert violations("rto-by-rtt", text + f"{time}000 a > A 1000:2000 ack 0\n") == count


@pytest.mark.parametrize(("cc", "count"), [("bbr", 0), ("reno", 1)])
def test_bbr_writes_ssthresh_within_a_recovery(cc: str, count: int) -> None:
    """bbr_check_drain(): which begins no other recovery, that ends later."""
    begins = "20000 ack recovery una 1000 nxt 9000 cwnd 6 ssthresh 50 pipe 6 prior 9 delivered 2\n"
    sends = "21000 send recovery una 1000 nxt 12000 cwnd 6 ssthresh 50 pipe 6 prior 5 delivered 2\n"
    lower = "25000 ack recovery una 2000 nxt 12000 cwnd 6 ssthresh 40 pipe 6 prior 6 delivered 3\n"
    ends = "30000 ack open una 9000 nxt 12000 cwnd 4 ssthresh 40 pipe 3 prior 6 delivered 9\n"
    trace = SENT + begins + sends + lower + ends
    assert violations("recovery-ends", FIRST, trace=trace, cc=cc) == count


@pytest.mark.parametrize(("flags", "count"), [("A", 1), ("PA", 0)])
def test_a_write_may_end_at_the_edge_of_the_window_by_chance(flags: str, count: int) -> None:
    """tso_fragment(): what the window cuts is not pushed."""
    text = HELLO.replace("win 64000", "win 5300") + burst(10000, 0, 5) + f"11000 a > {flags} 5000:5300 ack 0\n"
    text += "30000 a < A ack 5300 win 5300\n30000 a > A 5300:6300 ack 0\n"
    assert violations("silly-window-sent", text) == count


@pytest.mark.parametrize(("window", "count"), [(4000, 0), (8000, 2)])
def test_a_full_segment_is_half_of_the_largest_window(window: int, count: int) -> None:
    """tcp_bound_to_half_wnd(): segments of 2000 bytes, and a last one of 1000; later ones have 4000."""
    text = HELLO.replace("win 64000", f"win {window}") + "10000 a > A 0:2000 ack 0\n10000 a > A 2000:3000 ack 0\n"
    text += f"30000 a < A ack 3000 win {window}\n"
    text += "30000 a > A 3000:5000 ack 0\n31000 a < A ack 3000 win 64000\n32000 a > A 5000:7000 ack 0\n"
    text += "40000 a < A ack 7000\n40000 a > A 7000:11000 ack 0\n50000 a < A ack 11000\n"
    more: dict[str, Any] = {"options": {"nodelay": False}}
    assert found("nagle", text, **more).count == count


@pytest.mark.parametrize(("limit", "count"), [("cwnd", 1), ("application", 0)])
def test_an_application_that_had_written_all_before_a_timeout_has_nothing_new(limit: str, count: int) -> None:
    line = FRTO.splitlines()[1]
    trace = FRTO.replace(line, f"{line} limited {TCP_LIMITS.index(limit)}")
    assert violations("frto-new-data", SPURIOUS, trace=trace) == count
    short = SPURIOUS.replace("8000:9000", "8000:8999")  # ends what was written
    assert violations("frto-new-data", short, trace=trace) == 0


@pytest.mark.parametrize(("least_us", "count"), [(200_000, 1), (5000, 0)])
def test_a_probe_is_due_with_the_rto_where_its_least_is_small(least_us: int, count: int) -> None:
    """tcp_schedule_loss_probe(): after 10 ms and 5, less a tick of 4; without RACK it goes on when SACKs come."""
    text = FLIGHT + "20000 a < A ack 0 sack 8000:9000\n21000 a > A 8000:9000 ack 0\n"
    settings = {"kernel": "6.12", "net.ipv4.tcp_recovery": 0, "net.ipv4.tcp_rto_min_us": least_us}
    assert violations("rtx-of-sacked", text, **settings) == count


@pytest.mark.parametrize(("moves", "recovery", "count"), [(1000, 1, 1), (1000, 0, 0), (2000, 0, 1)])
def test_a_probe_that_was_due_stays_where_losses_are_not_detected_by_time(
    moves: int, recovery: int, count: int
) -> None:
    """tcp_ack(): a SACK sets no timer; an ACK of new data sets another one, with something SACKed."""
    settings = {"a": {"kernel": "6.12", "net.ipv4.tcp_recovery": recovery}}
    text = FLIGHT + "20000 a < A ack 1000\n30000 a < A ack 1000 sack 3000:4000\n"
    text += f"31000 a < A ack {moves} sack 3000:5000\n60000 a > A 8000:9000 ack 0\n"
    assert found("tlp-in-recovery", text, settings=settings).count == count


@pytest.mark.parametrize(
    ("recovery", "newer", "again", "count"),
    [
        (1, "9000:10000", 180_000, 1),
        (1, "9000:10000", 67_000, 0),
        (1, "9000:10000", 67_001, 1),
        (1, "7000:8000", 180_000, 0),
        (0, "9000:10000", 180_000, 0),
    ],
)
def test_what_was_sent_again_and_lost_is_found_by_what_was_sent_later(
    recovery: int, newer: str, again: int, count: int
) -> None:
    """RACK: 9000 leaves after the retransmission of 1000, 7000 before it."""
    settings = {"a": {"kernel": "6.12", "net.ipv4.tcp_recovery": recovery}}
    text = FLIGHT + "20000 a < A ack 1000 sack 2000:7000\n21000 a > A 1000:2000 ack 0\n22000 a > A 9000:10000 ack 0\n"
    text += f"33000 a < A ack 1000 sack {newer}\n{again} a > A 1000:2000 ack 0\n{again + 10_000} a < A ack 10000\n"
    assert found("fast-retransmit", text, settings=settings).count == count


@pytest.mark.parametrize(("sacked", "count"), [(248_900, 0), (249_600, 1)])
def test_what_was_sent_again_shows_a_loss_only_after_the_shortest_rtt(sacked: int, count: int) -> None:
    """tcp_rack_update(): on a path that has become shorter its RTT is that of timestamps, 4.4 ms that count as 5."""
    text = "0 a > S win 64000 ts 1000/0\n10000 a < SA ack 0 win 64000 ts 5000/1000\n10000 a > A ack 0 ts 1010/5000\n"
    text += burst(10_000, 0, 9).replace("ack 0", "ack 0 ts 1010/5000")
    text += "240000 a > A 0:1000 ack 0 ts 1240/5000\n244400 a < A ack 1000 ts 5240/1240\n"
    text += (burst(244_400, 1, 1) + burst(244_500, 2, 6)).replace("ack 0", "ack 0 ts 1244/5240")
    text += f"{sacked} a < A ack 1000 sack 2000:7000 ts 5245/1240\n250000 a < A ack 1000 sack 2000:7000 ts 5246/1240\n"
    assert violations("fast-retransmit", f"{text}480000 a > A 1000:2000 ack 0 ts 1480/5245\n") == count


@pytest.mark.parametrize(("sack", "count"), [(" sack 4000:5000", 0), ("", 1)])
def test_a_sack_measures_the_rtt_where_what_is_acknowledged_was_sent_again(sack: str, count: int) -> None:
    """tcp_ack_update_rtt(): ACKs were lost, and what was sent once seems to have taken 240 ms."""
    text = FLIGHT + f"215000 a > A 0:1000 ack 0\n250000 a < A ack 1000{sack}\n" + burst(255_000, 1, 8)
    text += "270000 a < A ack 9000\n280000 a > A 9000:10000 ack 0\n290000 a < A ack 10000\n"
    text += "300000 a > A 10000:11000 ack 0\n1000000 a > A 10000:11000 ack 0\n"
    assert violations("rto-restored", text) == count


@pytest.mark.parametrize(("state", "count"), [("loss", 1), ("disorder", 0)])
def test_a_timeout_that_was_taken_back_is_answered_no_more(state: str, count: int) -> None:
    line = FRTO.splitlines()[3]
    back = (
        line.replace("240000", "245000")
        .replace("retransmit loss", f"ack {state}")
        .replace("pipe 1 prior 0", "pipe 1 prior 1")
    )
    assert violations("frto-new-data", SPURIOUS, trace=FRTO.replace(line, f"{line}\n{back}")) == count


@pytest.mark.parametrize(("ack", "count"), [(0, 0), (1000, 1)])
def test_a_duplicate_ack_does_not_set_a_probe_anew(ack: int, count: int) -> None:
    """The probe of 31 ms has sent new data, and is the only one until that is acknowledged."""
    text = FLIGHT + "99000 a < A ack 9000 sack 8000:9000\n"
    trace = (
        "10000 ack open una 0 nxt 9000 cwnd 20 ssthresh 99 pipe 9 prior 9 delivered 2\n"
        f"28000 ack open una {ack} nxt 9000 cwnd 20 ssthresh 99 pipe 9 prior 9 delivered 3\n"
        f"31000 send open una {ack} nxt 10000 cwnd 20 ssthresh 99 pipe 10 prior 9 delivered 3\n"
        "99000 ack open una 9000 nxt 10000 cwnd 20 ssthresh 99 pipe 1 prior 10 delivered 12\n"
    )
    assert violations("tlp-missing", text, trace=trace) == count


@pytest.mark.parametrize("rule", ["delivered-count", "pipe-without-loss", "sacked-is-disorder"])
def test_a_sack_may_be_left_out_where_a_packet_was_not_split(rule: str) -> None:
    """tcp_fragment(), with a full send buffer."""
    text = FLIGHT + "20000 a < A ack 1000 sack 2000:3000\n20500 a > A ack 0\n"
    ack = "20000 ack open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 8 prior 9 delivered 2\n"
    before = "15000 ack open una 0 nxt 9000 cwnd 10 ssthresh 99 pipe 9 prior 9 delivered 1\n"
    trace = events(SENT + before + ack)
    assert found(rule, text, events=trace).count == 1
    counters = {"a": {"snmp": {"TcpExt.TCPWqueueTooBig": 1}}}
    assert found(rule, text, events=trace, counters=counters).undecided


@pytest.mark.parametrize(("time", "count"), [(20000, 0), (20001, 1)])
def test_an_ack_with_nothing_in_flight_is_no_event(time: int, count: int) -> None:
    """tcp_ack(): the D-SACK of the second ACK of an instant counts with the next event."""
    text = FLIGHT + "15000 a > A 8000:9000 ack 0\n20000 a < A ack 9000\n"
    text += f"{time} a < A ack 9000 sack 8000:9000\n30000 a > A 9000:10000 ack 0\n"
    before = "12000 ack open una 0 nxt 9000 cwnd 10 ssthresh 99 pipe 9 prior 9 delivered 1\n"
    ack = f"{time} ack open una 9000 nxt 9000 cwnd 11 ssthresh 99 pipe 0 prior 9 delivered 10\n"
    assert violations("delivered-count", text, trace=SENT + before + ack) == count


@pytest.mark.parametrize(("ssthresh", "count"), [(64, 0), (50, 1)])
def test_an_ack_may_take_a_reduction_back_and_begin_another(ssthresh: int, count: int) -> None:
    """tcp_try_undo_partial(), and tcp_fastretrans_alert() goes on: what was delivered counts from there."""
    trace = (
        "10000 send open una 0 nxt 90000 cwnd 100 ssthresh 999 pipe 90 prior 89 delivered 1\n"
        "20000 ack recovery una 0 nxt 90000 cwnd 85 ssthresh 50 pipe 80 prior 90 delivered 11\n"
        f"30000 ack recovery una 1000 nxt 90000 cwnd 78 ssthresh {ssthresh} pipe 77 prior 80 delivered 12\n"
        f"31000 ack recovery una 1000 nxt 90000 cwnd 75 ssthresh {ssthresh} pipe 74 prior 77 delivered 15\n"
    )
    assert violations("prr-window", FIRST, trace=trace) == 2 * count


@pytest.mark.parametrize(("event", "count"), [("retransmit", 0), ("timeout", 1)])
def test_a_path_that_takes_shorter_packets_is_no_loss(event: str, count: int) -> None:
    """tcp_simple_retransmit()."""
    again = f"20000 {event} loss una 0 nxt 9000 cwnd 10 ssthresh 99 pipe 9 prior 0 delivered 1\n"
    assert violations("reduction-at-loss", FIRST, trace=SENT + again, cc="reno") == count


@pytest.mark.parametrize(("again", "count"), [(163_000, 0), (163_001, 1)])
def test_rack_waits_for_the_rtt_of_any_that_an_ack_reports(again: int, count: int) -> None:
    """tcp_rack_advance(): 70 ms, and a tick for each timer, though what was sent last took 1 ms."""
    text = FLIGHT + "80000 a < A ack 1000 sack 2000:7000\n81000 a > A 1000:2000 ack 0\n82000 a > A 9000:10000 ack 0\n"
    text += f"83000 a < A ack 1000 sack 9000:10000\n{again} a > A 1000:2000 ack 0\n200000 a < A ack 10000\n"
    assert violations("fast-retransmit", text) == count


@pytest.mark.parametrize(("length", "count"), [(2000, 0), (1999, 1)])
def test_what_was_written_before_the_window_grew_has_its_first_size(length: int, count: int) -> None:
    """tcp_bound_to_half_wnd(): 4000 bytes of window, then 8000, so that later segments have 4000 bytes."""
    text = HELLO.replace("win 64000", "win 4000") + "20000 a < A ack 0 win 6000\n"
    text += "20000 a > A 0:2000 ack 0\n20000 a > A 2000:4000 ack 0\n20000 a > A 4000:6000 ack 0\n"
    text += f"21000 a < A ack 0 win {6000 + length}\n22000 a > A 6000:{6000 + length} ack 0\n"
    text += f"30000 a < A ack 6000 win 8000\n31000 a > A {6000 + length}:{10000 + length} ack 0\n"
    assert violations("silly-window-sent", text) == count
