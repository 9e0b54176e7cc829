# SPDX-License-Identifier: Apache-2.0
"""The window is reduced after an idle time."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import RTO_MIN_NS, TICK_NS, beyond, ms, sysctl
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import initial_window, new_data, segments, segments_sent

SPEC = RuleSpec(
    name="restart-window",
    must="After more than an RTO without sending, what is sent before an ACK comes is at most the initial window, or "
    "the window halved for every RTO.",
    source="RFC 5681, 4.1",
    level="SHOULD",
    needs=("start",),
    quote="a TCP SHOULD set cwnd to no more than RW before beginning transmission if the TCP has not sent data in an "
    "interval exceeding the retransmission timeout",
    linux="The window is halved for every RTO of idle time (RFC 2861): tcp_cwnd_restart(). Not with a congestion "
    "control that has cong_control(), such as BBR, and not if net.ipv4.tcp_slow_start_after_idle is 0. A tail loss "
    "probe may add a segment.",
)
_OWN = ("bbr",)
"""Congestion controls that set the window on their own."""


def check(trace: Trace) -> Found:
    if not sysctl(trace, "tcp_slow_start_after_idle", 1):
        return undecided("net.ipv4.tcp_slow_start_after_idle is 0")
    if trace.cc.partition("_")[0] in _OWN:
        return undecided(f"{trace.cc} sets the window after an idle time on its own")
    board = trace.board
    time = trace["time_ns"]
    data = new_data(trace) & trace.from_syn
    empty = data & (trace.una >= trace.nxt) & (trace.una > 0)  # nothing was in flight
    rows = np.flatnonzero(empty)
    last = trace.latest(board.sent & trace.data, empty)[rows]
    idle = trace.sparse(rows, np.where(last >= 0, time[rows] - time[last], 0))
    floor = max(RTO_MIN_NS, sysctl(trace, "tcp_rto_min_us", 0) * 1000)
    if not (idle > floor).any():
        return NOTHING
    longest = np.maximum(board.rtt_max, board.rtt_echoed)
    rto = np.maximum(5 * longest, longest + floor) + 2 * TICK_NS
    begins = empty & (idle > rto)
    start = np.where(data, trace.latest(begins), -1)
    start = np.where(begins, np.arange(len(trace)), start)
    burst = data & (start >= 0) & (start > trace.latest(board.acks))
    sent = segments_sent(trace)
    flight = sent - np.maximum(segments(trace, np.maximum(trace.una, 0), np.arange(len(trace))) - 1, 0)
    peak = np.maximum(trace.highest(flight, data), initial_window(trace))
    halvings = np.minimum(idle // rto, 40)
    # It grows while it is less than twice the flight, by what an ACK acknowledges (tcp_is_cwnd_limited()).
    most = np.maximum(initial_window(trace), (3 * peak - 1) >> halvings)[start]
    number = sent - sent[start] + trace["segs"][start]
    probe = (number == most + 1) & beyond(trace)
    return where(
        burst & (number > most) & ~probe,
        lambda row: f"sends {number[row]} segments at once after {ms(idle[start[row]])} idle; at most {most[row]}",
        start,
    )
