# SPDX-License-Identifier: Apache-2.0
"""What rules let pass, and what not, where packets come late or twice and SACK is off."""

from __future__ import annotations

from typing import Any

import pytest

from controller.tests.rules.conversation import HELLO, found
from controller.tests.rules.test_kernel_state import ACKED, BEGAN, FIRST_ACK, FRTO, LOST, NINE, SPURIOUS
from controller.tests.rules.traced import FIRST, SENT, burst, events, sample, violations

NO_SACK: dict[str, Any] = {"net.ipv4.tcp_sack": 0, "kernel": "6.12"}


def counted(*names: str) -> dict[str, Any]:
    return {"a": {"snmp": {f"TcpExt.{name}": 1 for name in names}}}


def test_each_duplicate_ack_lets_a_segment_go_before_any_data_is_acknowledged() -> None:
    """RFC 3042."""
    ten, more = HELLO + burst(10000, 0, 10), burst(20000, 10, 1)
    assert violations("initial-window", ten + more) == 1
    assert violations("initial-window", ten + "20000 a < A ack 0\n" + more) == 0


def test_behind_a_reordering_more_may_be_outstanding() -> None:
    sent = "20000 send disorder una 0 nxt 13000 cwnd 10 ssthresh 99 pipe 10 prior 9 delivered 3\n"
    more: dict[str, Any] = {"settings": {"a": NO_SACK}, "events": events(SENT + sent)}
    assert found("limited-transmit", FIRST, **more).count == 1, "RACK needs SACK"
    assert found("limited-transmit", FIRST, counters=counted("TCPRenoReorder"), **more).undecided


@pytest.mark.parametrize(("kernel", "flags", "count"), [("6.1", "FA", 0), ("6.12", "FA", 1), ("6.1", "A", 1)])
def test_before_6_12_a_fin_may_leave_beyond_the_window(kernel: str, flags: str, count: int) -> None:
    """tcp_cwnd_test()."""
    sent = "20000 send disorder una 0 nxt 13001 cwnd 10 ssthresh 99 pipe 10 prior 9 delivered 3\n"
    text = HELLO + f"10000 a > A 0:12000 ack 0 segs 12\n20000 a > {flags} 12000:13000 ack 0\n"
    assert violations("limited-transmit", text, trace=SENT + sent, **NO_SACK | {"kernel": kernel}) == count


@pytest.mark.parametrize(("acks", "sent_us", "evidence"), [(1, 20100, 1), (2, 20100, 1), (3, 20100, 0), (1, 25000, 1)])
def test_one_duplicate_ack_shows_no_loss_and_is_no_timer(acks: int, sent_us: int, evidence: int) -> None:
    """RFC 5681, 3.2; at 25 ms it is paced."""
    text = HELLO + burst(10000, 0, 9) + "20000 a < A ack 1000\n" + "20100 a < A ack 1000\n" * acks
    text += f"{sent_us} a > A 1000:2000 ack 0\n"
    assert violations("rtx-without-evidence", text, **NO_SACK) == evidence
    for rule in ("rto-minimum", "rto-by-rtt"):
        assert violations(rule, text, **NO_SACK) == 0
        assert violations(rule, text.replace("20100 a < A ack 1000\n", ""), **NO_SACK) == 1


def test_what_lacks_behind_a_partial_ack_is_sent_again_without_further_duplicates() -> None:
    """RFC 6582, 3.2: the recovery began with what came in time, so that nothing was sent again."""
    text = HELLO + burst(10000, 0, 9) + "20000 a < A ack 1000\n" + "20100 a < A ack 1000\n" * 3
    text += "20300 a < A ack 2000\n20400 a > A 2000:3000 ack 0\n"
    assert violations("dup-threshold", text, **NO_SACK) == 0
    assert found("dup-threshold", text, settings={"a": {"kernel": "6.12"}}).undecided, "RACK"
    for kernel in ("6.16-coverage", "6.16.3", "6.16"):
        old = {"a": {"kernel": kernel, "net.ipv4.tcp_recovery": 0}}
        assert not found("dup-threshold", text, settings=old).undecided
        new = {"a": {"kernel": "7.3" + kernel[4:], "net.ipv4.tcp_recovery": 0}}
        assert found("dup-threshold", text, settings=new).undecided, "RACK can't be turned off"
    two = text.replace("20100 a < A ack 1000\n", "", 1)
    assert violations("rtx-without-evidence", text, **NO_SACK) == 0
    assert violations("rtx-without-evidence", two, **NO_SACK) == 1


def test_what_was_sent_again_in_the_microsecond_of_new_data_passes_for_the_older_one() -> None:
    """RFC 8985, 6.2: RACK_sent_after()."""
    begins = "20400 a < A ack 1000 sack 2000:5000\n"
    text = ACKED + begins + "{}" + LOST + "23000 a > A 10000:11000 ack 0\n"
    first = "21000 ack recovery una 1000 nxt 10000 cwnd 7 ssthresh 5 pipe 9 prior 9 delivered 6\n"
    again = "22000 ack recovery una 1000 nxt 10000 cwnd 7 ssthresh 5 pipe 9 prior 9 delivered 7\n"
    trace = NINE + FIRST_ACK + BEGAN + first + again
    new = "{} a > A 9000:10000 ack 0\n"
    assert violations("rack-pipe", text.format(new.format(20450)), trace=trace) == 1
    assert violations("rack-pipe", text.format(new.format(20500)), trace=trace) == 0


def test_a_sender_with_a_small_buffer_may_have_no_new_data() -> None:
    more: dict[str, Any] = {"settings": {"a": {"cc": "reno"}}, "events": events(FRTO)}
    assert found("frto-new-data", SPURIOUS, options={"send_buffer": 10_000}, **more).undecided
    assert found("frto-new-data", SPURIOUS, options={"send_buffer": "none"}, **more).count == 1


def test_bbr_does_not_show_in_its_window_that_a_recovery_was_undone() -> None:
    begins = "20000 ack recovery una 1000 nxt 9000 cwnd 6 ssthresh 50 pipe 6 prior 9 delivered 2\n"
    ends = "30000 ack open una 8000 nxt 9000 cwnd 6 ssthresh 50 pipe 3 prior 9 delivered 9\n"
    more: dict[str, Any] = {"settings": {"a": {"cc": "bbr"}}, "events": events(SENT + begins + ends)}
    assert found("recovery-ends", FIRST, **more).count == 1
    assert found("recovery-ends", FIRST, counters=counted("TCPPartialUndo"), **more).count == 0
    reno = more | {"settings": {"a": {"cc": "reno"}}}
    assert found("recovery-ends", FIRST, counters=counted("TCPPartialUndo"), **reno).count == 1


def test_prr_is_not_judged_where_one_ack_undoes_a_reduction_and_begins_another() -> None:
    begins = "20000 ack recovery una 0 nxt 9000 cwnd 8 ssthresh 5 pipe 8 prior 9 delivered 2\n"
    more: dict[str, Any] = {"events": events(SENT + begins), "counters": counted("TCPPartialUndo")}
    assert found("prr-window", FIRST, settings={"a": {"cc": "reno"} | NO_SACK}, **more).undecided
    assert found("prr-window", FIRST, settings={"a": {"cc": "reno"}}, **more).count == 1


@pytest.mark.parametrize(
    ("una", "cwnd", "undone", "count"), [(1000, 8, 1, 0), (1000, 8, 0, 1), (0, 8, 1, 1), (1000, 9, 1, 1)]
)
def test_the_ack_that_undoes_a_reduction_may_begin_another_with_one_segment(
    una: int, cwnd: int, undone: int, count: int
) -> None:
    """tcp_try_undo_partial() unmarks what was lost, and RACK marks one of it again: nothing else shows it."""
    begins = "20000 ack recovery una 0 nxt 9000 cwnd 8 ssthresh 5 pipe 7 prior 9 delivered 2\n"
    begins += "20000 retransmit recovery una 0 nxt 9000 cwnd 8 ssthresh 5 pipe 8 prior 7 delivered 2\n"
    again = f"22000 ack recovery una {una} nxt 9000 cwnd {cwnd} ssthresh 5 pipe 7 prior 8 delivered 3\n"
    trace, counters = events(SENT + begins + again), counted("TCPPartialUndo") if undone else {}
    broken = found("prr-window", FIRST, events=trace, counters=counters, settings={"a": {"cc": "reno"}})
    assert broken.count == count


def test_until_data_is_acknowledged_the_rto_may_be_that_of_earlier_connections() -> None:
    """tcp_init_metrics(); and an RTT counts from the ACK on that shows it."""
    values = {"time_ns": 90_000_000, "state": 1, "rtt": 10_000, "rto": 219_000}
    idle = HELLO + "10000 a > A 0:1000 ack 0\n"
    assert found("rto-of-rtt", idle + "20000 a < A ack 1000\n", samples=sample(**values)).count == 1
    assert found("rto-of-rtt", idle, samples=sample(**values)).count == 0
    assert found("rto-of-rtt", idle + "80000 a < A ack 1000\n", samples=sample(**values)).count == 0


def test_an_event_is_of_what_tcp_had_received_by_then() -> None:
    """A host that is busy has more ACKs: 4000 had arrived, and TCP had received 1000."""
    arrived = HELLO + burst(10000, 0, 9) + "20000 a < A ack 1000 sack 8000:9000\n20500 a < A ack {}\n"
    sent = "10000 send open una 0 nxt 9000 cwnd 10 ssthresh 99 pipe 9 prior 0 delivered 1\n"
    first = "20000 ack open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 7 prior 9 delivered 3\n"
    then = "20600 ack open una {} nxt 9000 cwnd 12 ssthresh 99 pipe 6 prior 7 delivered {}\n"
    for una, acked, delivered, wrong in ((2000, 2000, 4, 0), (2000, 2000, 5, 1), (2000, 4000, 4, 0)):
        trace = sent + first + then.format(una, delivered)
        assert violations("delivered-count", arrived.format(acked), trace=trace) == wrong


def test_time_wait_counts_no_d_sacks() -> None:
    text = HELLO + "20000 a > A 0:1000 ack 0\n30000 a < A ack 1000 sack 0:1000\n40000 a > FA ack 0\n"
    gone, open_ = "50000 a < FA ack 1001\n", "50000 a < A ack 1001\n"
    again = "60000 a < A ack 1001 sack 0:1000\n"
    for ends, counts in ((gone, 1), (open_, 2)):
        counters = {"a": {"snmp": {"TcpExt.TCPDSACKRecv": counts}}}
        assert found("kernel-counts", text + ends + again, counters=counters).count == 0
        wrong = {"a": {"snmp": {"TcpExt.TCPDSACKRecv": counts + 1}}}
        assert found("kernel-counts", text + ends + again, counters=wrong).count == 1
