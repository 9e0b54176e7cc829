# SPDX-License-Identifier: Apache-2.0
"""The kernel's own numbers of a sender, next to what its packets say."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from testctl.core.outcome import Outcome

from controller.tests.rules.conversation import HELLO, found
from controller.tests.rules.traced import FIRST, SENT, burst, events, sample, violations

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


def test_what_a_receiver_took_back_may_be_delivered_twice() -> None:
    """RFC 2018, 8: an ACK inside of a block."""
    text = "21000 a < A ack 1000 sack 2000:5000\n22000 a < A ack 3000\n23000 a < A ack 5000\n"
    acks = "21000 ack disorder una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 5 prior 8 delivered 5\n"
    acks += "22000 ack loss una 3000 nxt 9000 cwnd 11 ssthresh 99 pipe 5 prior 5 delivered 6\n"
    for number in (7, 8):
        last = f"23000 ack loss una 5000 nxt 9000 cwnd 11 ssthresh 99 pipe 3 prior 5 delivered {number}\n"
        assert state("delivered-count", text, acks + last) == 0
        assert state("delivered-count", text.replace("ack 3000", "ack 5000"), acks + last) > 0


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


@pytest.mark.parametrize("rule", ["delivered-count", "pipe-without-loss", "srtt-follows", "slow-start-too-slow"])
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
    hybla, other = {"a": {"cc": "hybla"}}, {"a": {"cc": "illinois"}}
    grown = found("window-after-recovery", FIRST, settings=hybla, events=events(SENT + RECOVERY + ends))
    assert grown.count == (count if cwnd < ssthresh else 0)
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
    drops = begins.replace("ack recovery", "send cwr"), begins.replace("nxt 9000", "nxt 8000")
    for local in drops:  # the host's own queue dropped what was sent
        assert violations("recovery-ends", FIRST, trace=sent + local + more.replace("recovery", "cwr") + then) == 0


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
    late = violations("reduction-at-mark", text, trace=NINE + ack.replace("20000", "20001"))
    assert late == (count and state == "cwr"), "it had waited for the application"
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
    trace += f"30000 ack recovery una 0 nxt 90000 {last}\n"
    by_the_queue = trace.replace("20000 ack", "20000 send")
    assert delivered == 1 or not violations("prr-window", FIRST, trace=by_the_queue)
    return violations("prr-window", FIRST, trace=trace)


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
    assert violations("slow-start-too-slow", FIRST, trace=sent + ack) == count
    assert found("slow-start-too-slow", FIRST, settings={"a": {"cc": "vegas"}}, events=events(sent + ack)).undecided


@pytest.mark.parametrize(("again", "ssthresh", "count"), [(True, 5, 0), (True, 4, 1), (False, 5, 1)])
def test_a_loss_that_a_probe_repaired_reduces_the_window_at_once(again: bool, ssthresh: int, count: int) -> None:
    """tcp_process_tlp_ack()."""
    probe = "15000 retransmit open una 0 nxt 9000 cwnd 10 ssthresh 99 pipe 10 prior 10\n" if again else ""
    ack = f"20000 ack open una 2000 nxt 9000 cwnd 5 ssthresh {ssthresh} pipe 7 prior 10 delivered 3\n"
    assert violations("slow-start-too-slow", FIRST, trace=SENT + probe + ack) == count


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


@pytest.mark.parametrize(("una", "pipe", "count"), [(1000, 9, 0), (9000, 9, 1), (1000, 0, 1)])
def test_there_is_one_probe_at_a_time(una: int, pipe: int, count: int) -> None:
    """RFC 8985, 7.3; what a program writes while nothing is in flight is no probe."""
    text = FLIGHT + "80000 a < A ack 9000 sack 8000:9000\n"
    before = f"10000 ack open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe {pipe} prior 9 delivered 2\n"
    probe = "31000 send open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 9 prior 8 delivered 2\n"
    ack = f"32000 ack open una {una} nxt 12000 cwnd 12 ssthresh 99 pipe 7 prior 9 delivered 3\n"
    late = f"90000 ack open una {una} nxt 12000 cwnd 12 ssthresh 99 pipe 7 prior 7 delivered 3\n"
    assert violations("tlp-missing", text, trace=before + probe + ack + late) == count


@pytest.mark.parametrize(
    ("state", "sack", "count"), [("open", " sack 4000:6000", 1), ("disorder", " sack 4000:6000", 0), ("open", "", 0)]
)
def test_a_gap_that_sack_shows_is_disorder(state: str, sack: str, count: int) -> None:
    """tcp_try_keep_open()."""
    text = FLIGHT + f"20000 a < A ack 1000{sack}\n30000 a < A ack 9000 sack 8000:9000\n"
    assert violations("sacked-is-disorder", text, trace=NINE + FIRST_ACK.replace("open", state)) == count


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


@pytest.mark.parametrize(("ato", "count"), [(0, 0), (39, 1), (40, 0), (210, 0), (211, 1)])
def test_a_delayed_ack_waits_40_ms_at_least_and_an_rto_at_most(ato: int, count: int) -> None:
    """tcp_event_data_recv(), where what arrived is not known."""
    more: dict[str, Any] = {"settings": {"a": {"kernel": "6.1"}}, "outcome": Outcome()}
    taken = sample(time_ns=90_000_000, state=1, ato=1000 * ato, rto=210_000)
    assert found("delayed-ack-time", HELLO + "20000 a < PA 0:1000 ack 0\n", samples=taken, **more).count == count


@pytest.mark.parametrize(
    ("sizes", "mss", "count"),
    [
        ((1000, 1000), 1000, 0),
        ((1000, 1000), 999, 1),
        ((1000, 1000), 1001, 1),
        ((1000, 100), 600, 0),  # what it makes of a shorter segment depends on the one before
        ((1000, 100), 1001, 1),
        ((100, 100), 536, 0),  # with which it begins
        ((100, 100), 537, 1),
        ((2000,), 1448, 0),  # no more than it offered
        ((2000,), 2000, 1),
    ],
)
def test_a_receiver_takes_the_longest_segment_for_the_mss(sizes: tuple[int, ...], mss: int, count: int) -> None:
    """tcp_measure_rcv_mss()."""
    ends = np.cumsum((0, *sizes)).tolist()
    segments = [f"{20 + n}000 a < A {start}:{end} ack 0\n" for n, (start, end) in enumerate(pairwise(ends))]
    taken = {"state": 1, "rcv_mss": mss, "advmss": 1448}
    text = HELLO + "".join(segments)
    assert found("received-mss", text, samples=sample(time_ns=90_000_000, **taken)).count == count
    assert not found("received-mss", text, samples=sample(time_ns=20_000_000 + 1000 * len(sizes), **taken)).count
    gap = HELLO + "19000 a < A 9000:9001 ack 0\n" + "".join(segments[1:])
    assert not found("received-mss", gap, samples=sample(time_ns=90_000_000, **taken | {"rcv_mss": 88})).count


COUNTS = {
    "segs_out": 13, "segs_in": 4, "data_segs_out": 11, "data_segs_in": 3, "bytes_sent": 11_000,
    "bytes_retrans": 2000, "total_retrans": 2, "bytes_acked": 1001, "bytes_received": 1000, "rcv_ooopack": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_tcp_info_counts_what_packets_show(name: str) -> None:
    """RFC 4898; of an end that opened the connection, which counts its SYN as acknowledged."""
    text = FLIGHT + "20000 a < A 0:1000 ack 1000\n" + "21000 a < A 2000:3000 ack 1000\n" * 2
    text += "30000 a > A 1000:3000 ack 1000 segs 2\n"
    for more in (-1, 0, 1):
        taken = {"time_ns": 90_000_000, "state": 1} | COUNTS | {name: COUNTS[name] + more}
        assert found("info-counts", text, samples=sample(**taken)).count == abs(more)
        assert not found("info-counts", text, samples=sample(**taken | {"time_ns": 30_000_000})).count


@pytest.mark.parametrize(
    ("at_ms", "cwnd", "count"),
    [(219, 99, 1), (219, 100, 0), (230, 50, 0), (230, 49, 1), (440, 25, 0), (440, 24, 1), (9000, 10, 0), (9000, 9, 1)],
)
def test_after_an_idle_time_the_window_is_halved_for_every_rto(at_ms: int, cwnd: int, count: int) -> None:
    """tcp_cwnd_restart(): the RTO is 210 ms at least."""
    sent = SENT.replace("10000", "20000").replace("cwnd 10", "cwnd 100")
    acked = "30000 ack open una 9000 nxt 9000 cwnd 100 ssthresh 99 pipe 0 prior 9 delivered 10\n"
    then = f"{at_ms}000 send open una 9000 nxt 10000 cwnd {cwnd} ssthresh 99 pipe 1 prior 0 delivered 10\n"
    assert violations("window-after-idle", FIRST, trace=sent + acked + then) == count
    off = {"net.ipv4.tcp_slow_start_after_idle": 0}
    assert violations("window-after-idle", FIRST, trace=sent + acked + then, **off) == (cwnd < 100)
    in_flight = then.replace("pipe 1 prior 0", "pipe 2 prior 1")
    assert not violations("window-after-idle", FIRST, trace=sent + acked + in_flight)


def test_a_fin_behind_a_gap_came_out_of_order() -> None:
    text = HELLO + "20000 a < A 1000:2000 ack 0\n21000 a < FA 2000:2000 ack 0\n"
    right = {"segs_out": 2, "segs_in": 3, "data_segs_in": 1, "bytes_acked": 1, "rcv_ooopack": 2}
    for more in (0, 1):
        taken = {"time_ns": 90_000_000, "state": 1} | right | {"rcv_ooopack": 2 - more}
        assert found("info-counts", text, samples=sample(**taken)).count == more


def test_tcp_info_counts_syns_that_were_sent_again() -> None:
    """The end that opened the connection counts each; of the other one a SYN-ACK counts only if it is sent again."""
    opens = HELLO.replace("0     a > S win 64000", "0 a > S win 64000\n1000 a > S win 64000")
    taken = {"time_ns": 90_000_000, "state": 1, "bytes_acked": 1, "segs_out": 3, "segs_in": 1, "total_retrans": 1}
    assert not found("info-counts", opens, samples=sample(**taken)).count
    assert found("info-counts", opens, samples=sample(**taken | {"total_retrans": 0})).count == 1
    accepts = "0 a < S win 64000\n0 a > SA ack 0 win 64000\n1000 a < S win 64000\n1000 a > SA ack 0\n2000 a < A ack 0\n"
    taken = {"time_ns": 90_000_000, "state": 1, "segs_in": 2, "total_retrans": 1}
    assert not found("info-counts", accepts, samples=sample(**taken)).count
    assert found("info-counts", accepts, samples=sample(**taken | {"segs_in": 3})).count == 1
