# SPDX-License-Identifier: Apache-2.0
"""What rules about a sender's timers and windows share: settings of its kernel, and where they can't be judged."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN, SYN, Bools, Ints
from testctl.rules.core.trace import Trace, once
from testctl.rules.core.windows import quiet_ns

TICK_NS = 4_000_000
"""A timer of Linux counts ticks of up to 4 ms, so that it runs out up to a tick before its time in ns."""
_TICKS_NS = (1_000_000, TICK_NS)
RTO_MIN_NS = 200_000_000
"""Linux's TCP_RTO_MIN."""
_LATE_NS = 100_000_000
_TINY = 536
"""Bytes: of such a window a segment may have all (TCP_MSS_DEFAULT)."""
RTO_FIRST_NS = 1_000_000_000
"""RFC 6298, 2.1: the RTO before any RTT is measured."""


def on_time(intervals_ns: Ints) -> Ints:
    """What timers were set to at least that ran out after this time: Linux's of 64 ticks or more are late by up to an
    eighth (LVL_GRAN, kernel/time/timer.c), all by the tick in which they were set; a tick has 1 ms or 4 (CONFIG_HZ)."""
    late = [tick * (1 + 8 ** np.searchsorted(tick * 64 * 8 ** np.arange(4), intervals_ns)) for tick in _TICKS_NS]
    return np.asarray(intervals_ns - np.maximum(*late))


def sysctl(trace: Trace, name: str, default: int) -> int:
    """A setting net.ipv4.`name` of the host."""
    return int(trace.settings.get(f"net.ipv4.{name}", default))


def kernel(trace: Trace) -> tuple[int, int]:
    """The release of the host's kernel."""
    return trace.records.point.release_of(trace.host)


def rto_max_ns(trace: Trace) -> int:
    """The highest RTO of the host's Linux: TCP_RTO_MAX, or since 6.15 net.ipv4.tcp_rto_max_ms (54a378f43425)."""
    return sysctl(trace, "tcp_rto_max_ms", 120_000) * 1_000_000


def rto_min_ns(trace: Trace) -> int:
    """The lowest RTO of the host's Linux, a tick taken off."""
    return min(sysctl(trace, "tcp_rto_min_us", RTO_MIN_NS // 1000) * 1000, rto_max_ns(trace)) - TICK_NS


def rack(trace: Trace) -> bool:
    """Whether losses are detected by time (RFC 8985), which needs SACK; since 6.17 Linux can't otherwise
    (1c120191dcec)."""
    if not sysctl(trace, "tcp_sack", 1):
        return False
    return bool(sysctl(trace, "tcp_recovery", 1) & 1) or kernel(trace) >= (6, 17)


def reordered(trace: Trace) -> bool:
    """Whether a sender of the host saw a reordering, after which RACK waits before it takes a segment for lost."""
    counted = trace.records.snmp(trace.host)
    return any(counted.get(f"TcpExt.TCP{name}Reorder") for name in ("SACK", "Reno", "TS"))


@once
def timers(trace: Trace) -> Bools:
    """Retransmissions by a timer: without ACKs that speak of a loss, or of the head so long after them, with nothing
    sent or received in between, that it is no reaction to them and no reordering window."""
    board = trace.board
    if not board.again.any():
        return board.again
    late = board.again & board.head & (quiet_ns(trace) >= np.maximum(2 * board.rtt_max, _LATE_NS))
    return np.asarray(board.by_timer | late)


@once
def paced_ns(trace: Trace) -> Ints:
    """For each row how long its sender waits at most between packets that nothing but its pace parts; 0: no time.

    Linux adds the rest of it to a timer (tcp_pacing_delay()), and stamps a packet with the time of its turn, also
    one that a timer sends at once.  The pace seen last counts twice: BBR's changes by up to 5 / 3 from a round trip to
    the next.
    """
    time, sent = trace["time_ns"], trace.out & trace.data
    last = trace.latest(sent)
    apart = sent & (last >= 0) & (last > trace.latest(~trace.out)) & ~timers(trace)
    at = trace.latest(apart)
    return np.asarray(np.where(at >= 0, 2 * (time[at] - time[last[at]]), 0))


@once
def full_segment(trace: Trace) -> Ints:
    """For each row the MSS by then: half of the largest window that was offered, at most (tcp_bound_to_half_wnd())."""
    largest = trace.highest(trace["window"], ~trace.out)
    return np.clip(np.where(largest > _TINY, largest // 2, largest), 1, max(trace.mss, 1))


@once
def repeated_timer(trace: Trace) -> Bools:
    """Rows before which, since anything arrived last, a timer had retransmitted already."""
    return np.asarray(trace.latest(timers(trace)) > trace.latest(~trace.out))


@once
def probes(trace: Trace) -> Bools:
    """Retransmissions that may be tail loss probes: of the tail, by a timer, the first since anything arrived."""
    if sysctl(trace, "tcp_early_retrans", 3) not in (3, 4):
        return np.zeros(len(trace), np.bool_)
    return np.asarray(trace.board.by_timer & trace.board.tail & ~repeated_timer(trace))


def probe_ns(trace: Trace) -> Ints:
    """For each row how long a tail loss probe waits at least: two RTTs, or the RTO if that is less (RFC 8985, 7.2)."""
    least = trace.board.rtt_min
    return np.minimum(2 * least, least + rto_min_ns(trace))


def beyond(trace: Trace) -> Bools:
    """Data that Linux may send where the window is full, once: a tail loss probe, by a timer, with new data (RFC 8985,
    7.3), and before 6.12 a segment with the FIN (tcp_cwnd_test()).

    A probe waits no longer than the RTO, since the first segment was sent (tcp_schedule_loss_probe()).
    """
    board, time, most = trace.board, trace["time_ns"], rto_max_ns(trace) - TICK_NS
    # A SYN-ACK that comes again, and the ACK that answers it, do not set the timer anew.
    sets = trace.latest(~(trace.out & trace.pure_ack | trace.has(SYN) & (trace.una >= 0)))
    idle = time - time[np.maximum(sets, trace.first)]
    quiet = quiet_ns(trace) >= 1_000_000
    by_timer = quiet & (idle >= probe_ns(trace))
    rows = np.flatnonzero(trace.out & trace.data & ~by_timer & (quiet | (2 * board.rtt_min > most)))
    sent, _ = board.transmitted(np.maximum(trace.una, -1), rows)
    least = np.where(quiet, np.minimum(board.rtt_min + rto_min_ns(trace), most), most)
    by_timer[rows] = (sent >= 0) & (time[rows] - time[sent] >= least[rows])
    last = trace.has(FIN) & (trace["segs"] == 1) & (kernel(trace) < (6, 12))
    return np.asarray(by_timer | last | bool(trace.delayed))  # what waited behind TCP has no time of TCP's


@once
def timeouts(trace: Trace) -> Bools:
    """Retransmissions of the first byte not acknowledged by a timer that must be the retransmission timer."""
    return np.asarray(timers(trace) & trace.board.head & ~probes(trace))


@once
def begins_recovery(trace: Trace) -> Bools:
    """Retransmissions for losses that ACKs show, without a recovery under way.

    A recovery ends when what was sent before it is acknowledged; if then something is still lost, Linux begins
    another, without a retransmission (tcp_fastretrans_alert()).  So it may last until what was sent before the last
    retransmission was acknowledged is acknowledged too.
    """
    board = trace.board
    repaired = trace.highest(trace.end, board.again)
    until = trace.highest(trace.nxt, board.again | (board.acks & (trace.una < repaired)))
    return np.asarray(board.evidence & (until <= trace["seq"]))


def ms(time_ns: float) -> str:
    return f"{time_ns / 1e6:.3f} ms"
