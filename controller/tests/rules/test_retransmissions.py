# SPDX-License-Identifier: Apache-2.0
"""Retransmissions, and the timers behind them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from controller.tests.rules.conversation import HELLO, HELLO_B, found

NO_RACK = {"a": {"net.ipv4.tcp_recovery": 0, "kernel": "6.12"}}
FLIGHT = (
    HELLO
    + """
    10000 a > A 0:1000 ack 0
    10000 a > A 1000:2000 ack 0
    10000 a > A 2000:3000 ack 0
    10000 a > A 3000:4000 ack 0
    10000 a > A 4000:5000 ack 0
    10000 a > A 5000:6000 ack 0
"""
)
"""Six segments after a handshake with an RTT of 10 ms."""
THREE_SACKED = (
    FLIGHT
    + """
    20000 a < A ack 0 sack 1000:2000
    20000 a < A ack 0 sack 1000:3000
    20000 a < A ack 0 sack 1000:4000
"""
)


def violations(rule: str, text: str, **more: Any) -> int:
    result = found(rule, text, **more)
    assert not result.undecided
    return result.count


def test_segments_that_are_entirely_acknowledged_are_removed() -> None:
    """RFC 9293, 3.10.7.4: what is acknowledged in part may be sent again."""
    text = FLIGHT + "20000 a < A ack 2500\n230000 a > A {}"
    assert violations("rtx-of-acked", text.format("1000:2000")) == 1
    assert violations("rtx-of-acked", text.format("2000:3000")) == 0
    assert violations("rtx-of-acked", text.format("2499:2500")) == 0  # a probe


def test_a_segment_that_is_sacked_is_skipped() -> None:
    """RFC 2018, 5.1: the first of three ACKs of an instant may be all that TCP has dealt with."""
    text = THREE_SACKED + "20000 a > A 0:1000\n{} a > A {}"
    assert violations("rtx-of-sacked", text.format(20001, "3000:4000")) == 1
    assert violations("rtx-of-sacked", text.format(20001, "4000:5000")) == 0
    assert violations("rtx-of-sacked", text.format(20000, "3000:4000")) == 0
    assert violations("rtx-of-sacked", text.format(20000, "1000:2000")) == 1


def test_a_probe_that_was_due_sends_the_tail_again_though_it_is_sacked() -> None:
    """tcp_send_loss_probe(): without RACK, which begins another timer."""
    text = FLIGHT + "20000 a < A ack 0 sack 5000:6000\n{} a > A {}"
    assert violations("rtx-of-sacked", text.format(30000, "5000:6000"), settings=NO_RACK) == 0
    assert violations("dup-threshold", text.format(30000, "5000:6000"), settings=NO_RACK) == 0
    assert violations("rtx-of-sacked", text.format(29000, "5000:6000"), settings=NO_RACK) == 1
    assert violations("rtx-of-sacked", text.format(30000, "5000:5500"), settings=NO_RACK) == 1
    assert violations("rtx-of-sacked", text.format(30000, "5000:6000")) == 1


def test_after_an_ack_within_a_block_no_block_counts() -> None:
    """RFC 2018, 8: the data receiver has reneged."""
    text = THREE_SACKED + "20000 a > A 0:1000\n30000 a < A ack {}\n30000 a > A 3000:4000"
    assert violations("rtx-of-sacked", text.format(1000)) == 0
    assert violations("rtx-of-sacked", text.format(500)) == 1


def test_a_segment_is_retransmitted_if_the_timer_expires() -> None:
    """RFC 793, 2.6: or after ACKs that show a loss."""
    assert violations("rtx-without-evidence", FLIGHT + "21000 a > A 0:1000") == 1
    assert violations("rtx-without-evidence", FLIGHT + "230000 a > A 0:1000") == 0
    assert violations("rtx-without-evidence", THREE_SACKED + "21000 a > A 0:1000") == 0
    plain = FLIGHT + "20000 a < A ack 0\n" * 3 + "20000 a > A 0:1000"
    assert violations("rtx-without-evidence", plain) == 0
    assert violations("rtx-without-evidence", plain.replace("20000 a < A ack 0\n", "", 1)) == 1


@pytest.mark.parametrize(("echo", "count"), [("", 1), (" ts 900/200", 0)])
def test_a_syn_that_is_sent_twice_has_a_sample_where_its_timestamp_is_echoed(echo: str, count: int) -> None:
    """RFC 7323, 4: 5 ms; the data after it takes 10 ms."""
    hello = f"0 a > S win 64000 ts 100/0\n5000 a > S win 64000 ts 200/0\n10000 a < SA ack 0 win 64000{echo}\n"
    talk = hello + "10000 a > A ack 0\n10000 a > A 0:1000 ack 0\n20000 a < A ack 1000\n20000 a > A 1000:2000\n"
    assert violations("rtx-without-evidence", talk + "35000 a > A 1000:2000") == count


def test_a_partial_ack_of_a_retransmission_is_evidence() -> None:
    """RFC 6582, 3.2: the next hole is sent again at once."""
    partial = FLIGHT + "20000 a < A ack 0\n" * 3 + "20000 a > A 0:1000\n30000 a < A ack 2000\n30000 a > A 2000:3000"
    assert violations("rtx-without-evidence", partial) == 0


@pytest.mark.parametrize(("sacked", "count"), [("1000:3000", 1), ("1000:3001", 0)])
def test_more_than_two_segments_are_sacked(sacked: str, count: int) -> None:
    """RFC 6675, 4."""
    text = FLIGHT + f"20000 a < A ack 0 sack {sacked}\n20000 a > A 0:1000"
    assert violations("dup-threshold", text, settings=NO_RACK) == count


@pytest.mark.parametrize(
    ("segments", "sacked", "count"), [(1, "1000:2000", 0), (4, "1000:4000", 1), (4, "1000:5000", 0)]
)
def test_the_threshold_is_what_the_host_is_set_to(segments: int, sacked: str, count: int) -> None:
    """net.ipv4.tcp_reordering."""
    settings = {"a": {**NO_RACK["a"], "net.ipv4.tcp_reordering": segments}}
    text = FLIGHT + f"20000 a < A ack 0 sack {sacked}\n20000 a > A 0:1000"
    assert violations("dup-threshold", text, settings=settings) == count


def test_since_6_17_losses_are_always_detected_by_time() -> None:
    text = FLIGHT + "20000 a < A ack 0 sack 1000:2000\n20000 a > A 0:1000"
    late = {"a": {"net.ipv4.tcp_recovery": 0, "kernel": "6.17"}}
    assert found("dup-threshold", text, settings=late).undecided
    assert violations("rack-too-early", text, settings=late) == 1


def test_a_timeout_needs_no_duplicate_acks() -> None:
    text = FLIGHT + "20000 a < A ack 0 sack 1000:2000\n230000 a > A 0:1000"
    assert violations("dup-threshold", text, settings=NO_RACK) == 0


def test_what_is_late_by_less_than_the_reordering_window_is_not_lost() -> None:
    """RFC 8985, 6.2: a quarter of the RTT of 10 ms."""
    text = FLIGHT + "20000 a < A ack 0 sack 1000:2000\n{} a > A 0:1000"
    assert violations("rack-too-early", text.format(22400)) == 1
    assert violations("rack-too-early", text.format(22500)) == 0
    assert violations("rack-too-early", THREE_SACKED + "20000 a > A 0:1000") == 0


@pytest.mark.parametrize(("sizes", "count"), [((300, 300, 300), 0), ((300, 300), 1)])
def test_small_segments_that_are_sacked_count_each(sizes: tuple[int, ...], count: int) -> None:
    """RFC 8985, 6.2: no reordering window once three segments are SACKed; RFC 6675, 4 counts bytes, Linux segments."""
    ends = [1000 + sum(sizes[:number]) for number in range(len(sizes) + 1)]
    small = "".join(f"10000 a > A {start}:{end}\n" for start, end in pairwise(ends))
    text = HELLO + f"10000 a > A 0:1000 ack 0\n{small}20000 a < A ack 0 sack 1000:{ends[-1]}\n20000 a > A 0:1000"
    assert violations("rack-too-early", text) == count
    assert violations("dup-threshold", text, settings=NO_RACK) == count


def test_without_sack_losses_are_not_detected_by_time() -> None:
    """RFC 8985, 4; RFC 6582, 3.2: after a partial ACK the next hole is sent again at once."""
    text = FLIGHT + "19000 a > A 6000:7000\n" + "20000 a < A ack 0\n" * 3 + "20000 a > A 0:1000\n"
    again = text + "28000 a < A ack 6000{}\n28000 a > A 6000:7000"
    assert violations("rack-too-early", again.format("")) == 0
    assert violations("rack-too-early", again.format(" sack 6500:7000")) == 1


def test_a_retransmission_is_not_lost_before_an_rtt() -> None:
    """RFC 8985, 6.2."""
    again = THREE_SACKED + "20000 a > A 0:1000\n{0} a < A ack 0 sack 1000:5000\n{0} a > A 0:1000"
    assert violations("rack-too-early", again.format(25000)) == 1
    assert violations("rack-too-early", again.format(30000)) == 0


def test_the_rto_has_a_minimum() -> None:
    """RFC 6298, 2.4; Linux's is 200 ms, or what tcp_rto_min_us says."""
    assert violations("rto-minimum", FLIGHT + "200000 a > A 0:1000") == 1
    assert violations("rto-minimum", FLIGHT + "210000 a > A 0:1000") == 0
    least = {"a": {"net.ipv4.tcp_rto_min_us": 50_000}}
    assert violations("rto-minimum", FLIGHT + "200000 a > A 0:1000", settings=least) == 0


def test_the_rto_is_srtt_and_four_times_the_variation() -> None:
    """RFC 6298, 2.3: after one sample of 100 ms it is 300 ms."""
    slow = """
        0      a > S win 64000
        100000 a < SA ack 0 win 64000
        100000 a > A ack 0
        100000 a > A 0:1000 ack 0
        100000 a > A 1000:2000 ack 0
        {} a > A 0:1000
    """
    assert violations("rto-by-rtt", slow.format(390_000)) == 1
    assert violations("rto-by-rtt", slow.format(400_000)) == 0


def test_the_earliest_segment_is_retransmitted() -> None:
    """RFC 6298, 5.4: a tail loss probe is of the last."""
    assert violations("rto-first-segment", FLIGHT + "230000 a > A 1000:2000") == 1
    assert violations("rto-first-segment", FLIGHT + "230000 a > A 0:1000") == 0
    assert violations("rto-first-segment", FLIGHT + "40000 a > A 5000:6000") == 0


@pytest.mark.parametrize(("sent", "count"), [("5000:5500", 0), ("5000:5400", 1), ("4000:5500", 1)])
def test_a_probe_ends_at_a_window_that_was_taken_back(sent: str, count: int) -> None:
    """tcp_retransmit_skb() cuts its segment there; RFC 9293, 3.8.6: a receiver that shrinks its window."""
    talk = f"{FLIGHT}20000 a < A ack 1000 win 4500\n230000 a > A {sent}"
    assert violations("rto-first-segment", talk) == count


@pytest.mark.parametrize(
    ("times", "count"),
    [
        ((230, 670, 1550), 0),
        ((230, 630, 1430), 1),
        ((230, 670, 1460), 1),
        ((234, 674, 1500), 0),
        ((230, 662, 1574, 3302), 0),  # with ticks of 1 ms the third is late by 64
        ((230, 662, 1574, 3240), 1),
    ],
)
def test_the_host_must_double_the_rto(times: tuple[int, ...], count: int) -> None:
    """RFC 6298, 5.5: 220 ms after the flight, then 440 ms, then 880 ms."""
    text = FLIGHT + "\n".join(f"{time}000 a > A 0:1000" for time in times)
    assert violations("rto-backoff", text) == count
    assert found("rto-backoff", text, settings={"a": {"net.ipv4.tcp_thin_linear_timeouts": 1}}).undecided


def test_a_timer_of_a_paced_sender_is_later_by_the_pace() -> None:
    """Linux's tcp_pacing_delay(): 67 ms between packets, and 221 ms of RTO, which is doubled without them."""
    text = HELLO + "10000 a > A 0:1000 ack 0\n77000 a > A 1000:2000 ack 0\n97000 a < A ack 1000\n"
    text += "144000 a > A 2000:3000 ack 0\n211000 a > A 3000:4000 ack 0\n507000 a > A 1000:2000\n{}000 a > A 1000:2000"
    assert violations("rto-backoff", text.format(955)) == 0
    assert violations("rto-backoff", text.format(755)) == 1
    at_once = text.replace("211000 a > A 3000:4000", "144000 a > A 3000:4000").replace("507000", "440000")
    assert violations("rto-backoff", at_once.format(888)) == 1


def test_what_leaves_again_after_icmp_is_no_timeout() -> None:
    """RFC 1191, 6.5: the records have no ICMP, the kernel counts it."""
    text = FLIGHT + "20000 a > A 0:500\n20000 a > A 500:1000"
    assert violations("rtx-without-evidence", text) == 2
    told = {"a": {"snmp": {"Icmp.InDestUnreachs": 1}}}
    assert found("rtx-without-evidence", text, counters=told).undecided.startswith("a received ICMP, which")


def test_the_rto_collapses_after_a_measurement() -> None:
    """RFC 6298, 5."""
    text = FLIGHT + "230000 a > A 0:1000\n240000 a < A ack 6000\n240000 a > A 6000:7000\n"
    measured = text + "250000 a < A ack 7000\n250000 a > A 7000:8000\n{} a > A 7000:8000"
    assert violations("rto-restored", measured.format(700_000)) == 1
    assert violations("rto-restored", measured.format(470_000)) == 0
    assert violations("rto-restored", text + "680000 a > A 6000:7000") == 0  # nothing measured: backed off


def test_timestamps_measure_what_was_sent_again() -> None:
    """RFC 7323, 4: the RTT of the SYN is 2 s, though the SYN was sent twice."""
    text = """
        0       a > S ts 1000/0
        1000000 a > S ts 2000/0
        2000000 a < SA ack 0 ts 9000/{}
        2000000 a > A ack 0 ts 3000/9000
        2000000 a > A 0:1000 ack 0 ts 3000/9000
        2010000 a < A ack 1000 ts 9010/3000
        2010000 a > A 1000:2000 ack 0 ts 3010/9010
        3010000 a > A 1000:2000 ack 0 ts 4010/9010
    """
    assert violations("rto-restored", text.format(1000)) == 0
    assert violations("rto-restored", text.format(2000).replace("1000000 a > S", "1990000 a > S")) == 1


def test_a_timer_that_follows_a_partial_ack_is_backed_off() -> None:
    """RFC 6298, 5.5: the first timeout, after ACKs that showed a loss, is one too."""
    text = FLIGHT + "20000 a < A ack 0\n" * 3 + "20000 a > A 0:1000\n30000 a < A ack 2000\n"
    assert violations("rto-restored", text + "260000 a > A 2000:3000\n740000 a > A 2000:3000") == 0
    assert violations("rto-restored", text + "740000 a > A 2000:3000\n1700000 a > A 2000:3000") == 0


def test_a_timeout_leaves_a_window_of_one_segment() -> None:
    """RFC 5681, 3.1."""
    text = FLIGHT + "230000 a > A 0:1000\n{} a > A 1000:2000"
    assert violations("loss-window", text.format(230000)) == 1
    assert violations("loss-window", text.format("240000 a < A ack 1000\n240000")) == 0
    for sack, known in ((0, False), (1, True)):
        paced = found("loss-window", text.format(230000), settings={"a": {"cc": "bbr", "net.ipv4.tcp_sack": sack}})
        assert (paced.count == 1, not paced.undecided) == (known, known)


def test_a_timeout_with_sacked_data_is_a_timeout_too() -> None:
    """RFC 5681, 3.1 and RFC 6298, 5.5."""
    text = FLIGHT + "20000 a < A ack 0 sack 1000:2000\n240000 a > A 0:1000\n"
    assert violations("loss-window", text + "240000 a > A 2000:3000") == 1
    assert violations("loss-window", text + "250000 a < A ack 2000\n250000 a > A 2000:3000") == 0
    assert violations("rto-backoff", text + "480000 a > A 0:1000") == 1
    assert violations("rto-backoff", text + "680000 a > A 0:1000") == 0


def test_a_probe_waits_for_two_rtts() -> None:
    """RFC 8985, 7.2."""
    assert violations("tlp-too-early", FLIGHT + "25000 a > A 5000:6000") == 1
    assert violations("tlp-too-early", FLIGHT + "31000 a > A 5000:6000") == 0


@pytest.mark.parametrize(("echo", "count"), [(2000, 0), (1900, 1)])
def test_a_probe_waits_for_rtts_that_timestamps_show_of_what_was_sent_again(echo: int, count: int) -> None:
    """tcp_ack_update_rtt()."""
    text = "0 a > S win 64000 ts 1000/0\n900000 a < SA ack 0 win 64000 ts 9000/1000\n900000 a > A ack 0 ts 1900/9000\n"
    again = "".join(f"{{}} a > A {n}000:{n + 1}000 ack 0 ts {{}}/9000\n" for n in range(24))
    text += again.format(*[900000, 1900] * 24) + again.format(*[2000000, 2000] * 24)
    text += "".join(f"20{n + 10}000 a < A ack {n}000 ts 9010/{echo}\n" for n in range(1, 25))
    text += "2040000 a > A 24000:25000 ack 0 ts 2040/9010\n2040000 a > A 25000:26000 ack 0 ts 2040/9010\n"
    assert violations("tlp-too-early", text + "2200000 a > A 25000:26000 ack 0 ts 2200/9010\n") == count


def test_a_single_segment_waits_for_a_delayed_ack_too() -> None:
    """RFC 8985, 7.2."""
    alone = HELLO + "10000 a > A 0:1000 ack 0\n{} a > A 0:1000"
    assert violations("tlp-too-early", alone.format(100_000)) == 1
    assert violations("tlp-too-early", alone.format(215_000)) == 0


def test_a_tail_is_probed_once() -> None:
    """RFC 8985, 7.3."""
    text = FLIGHT + "40000 a > A 5000:6000\n260000 a > A {}"
    assert violations("tlp-single", text.format("5000:6000")) == 1
    assert violations("tlp-single", text.format("0:1000")) == 0


def test_a_tail_is_probed_without_sacked_data() -> None:
    """RFC 8985, 7.2."""
    text = FLIGHT + "20000 a < A ack 0{}\n60000 a > A 5000:6000"
    assert violations("tlp-in-recovery", text.format(" sack 1000:2000")) == 1
    assert violations("tlp-in-recovery", text.format("")) == 0
    then = text.format(" sack 1000:2000\n30000 a < A ack {} sack 2000:3000")
    assert violations("tlp-in-recovery", then.format(1000)) == 0  # the receiver has reneged
    assert violations("tlp-in-recovery", then.format(500)) == 1


@pytest.mark.parametrize(
    ("kernel", "times", "count"),
    [
        ("6.1", (1000, 3000, 7000), 0),
        ("6.1", (1000, 2000), 1),
        ("6.12", (1000, 2000, 3000, 4000, 5000, 7000), 0),
        ("6.12", (1000, 2000, 3000, 4000, 5000, 6000), 1),
        ("6.12", (500,), 1),
    ],
)
def test_a_syn_is_retransmitted_after_a_second_and_doubles(kernel: str, times: tuple[int, ...], count: int) -> None:
    """RFC 6298, 2.1 and 5.5; since 6.5 Linux begins with four intervals of a second."""
    text = "0 a > S win 64000\n" + "\n".join(f"{time}000 a > S win 64000" for time in times)
    assert violations("syn-backoff", text, settings={"a": {"kernel": kernel}}) == count


def test_a_syn_ack_is_retransmitted_after_a_second_and_doubles() -> None:
    """RFC 6298, 2.1 and 5.5; for another SYN at once."""
    text = "0 b < S win 64000\n0 b > SA ack 0 win 64000\n"
    assert violations("synack-backoff", text + "1000000 b > SA ack 0\n3000000 b > SA ack 0", host="b") == 0
    assert violations("synack-backoff", text + "1000000 b > SA ack 0\n2000000 b > SA ack 0", host="b") == 1
    assert violations("synack-backoff", text + "500000 b > SA ack 0", host="b") == 1
    late = "1010000 b > SA ack 0\n3090000 b > SA ack 0\n7170000 b > SA ack 0"  # 2048 ms and 4096 ms, by ticks
    assert violations("synack-backoff", text + late, host="b") == 0
    assert violations("synack-backoff", text + "500000 b < S\n500000 b > SA ack 0", host="b") == 0


def test_keepalives_default_to_off() -> None:
    """RFC 9293, 3.8.4."""
    text = FLIGHT + "20000 a < A ack 6000\n1020000 a > A 5999:5999 ack 0"
    assert violations("keepalive-idle", text, options={"keepalive": "off"}) == 1
    assert violations("keepalive-idle", text, options={"keepalive": 1_000_000_000}) == 0
    assert violations("keepalive-idle", text, options={"keepalive": 2_000_000_000}) == 1
    peers = text.replace("1020000", "1000000 a < A -1:-1 ack 6000\n1020000")
    assert violations("keepalive-idle", peers, options={"keepalive": 1_000_000_000}) == 0
    for window, count in ((0, 0), (1000, 1)):  # 0: the peer took it back, and that is what is probed
        window_probe = text.replace("ack 6000", f"ack 6000 win {window}")
        assert violations("keepalive-idle", window_probe, options={"keepalive": "off"}) == count
    assert found("keepalive-idle", text).undecided


def test_retransmissions_of_a_host_with_a_queue_are_undecided() -> None:
    text = FLIGHT + "21000 a > A 0:1000"
    assert found("rtx-without-evidence", text, settings={"a": {"htb_rate": 1}}).undecided
    assert found("rtx-without-evidence", text, settings={"s": {"fate": "corrupt data 1 of f"}}).undecided
    middle = "20000 a > A 0:1000 ack 0\n21000 a > A 0:1000 ack 0"
    assert found("rtx-without-evidence", middle).undecided


def test_the_other_end_is_judged_alike() -> None:
    text = HELLO_B + "15000 b > A 0:1000 ack 0\n15000 b > A 1000:2000 ack 0\n16000 b > A 0:1000 ack 0"
    assert violations("rtx-without-evidence", text, host="b") == 1
