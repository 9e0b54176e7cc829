# SPDX-License-Identifier: Apache-2.0
"""A loss that ACKs show is repaired before the timer runs out."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import Bools, Ints
from testctl.rules.core.sender import TICK_NS, ms, rack, sysctl
from testctl.rules.core.spec import NOTHING, SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="fast-retransmit",
    must="The first segment not acknowledged is sent again at the latest two RTTs after more than three segments above "
    "it were SACKed, and again if what was sent after that was SACKed.",
    source="RFC 5681, 3.2",
    level="SHOULD",
    needs=SENDER,
    only_if=("sack",),
    quote="After receiving 3 duplicate ACKs, TCP performs a retransmission of what appears to be the missing segment, "
    "without waiting for the retransmission timer to expire.",
    linux="After reordering was seen, RACK waits for its window, an RTT at most: tcp_rack_reo_wnd().  Without RACK "
    "(net.ipv4.tcp_recovery=0, before 6.17) only the timer sends a second time.",
)


def check(trace: Trace) -> Found:
    board = trace.board
    time = trace["time_ns"]
    threshold = max(3, sysctl(trace, "tcp_reordering", 3))
    shown = (board.sacked_bytes > threshold * trace.mss) & (trace.nxt > trace.una) & trace.from_syn
    rows = np.flatnonzero(shown)
    sent, times = board.transmitted(np.maximum(trace.una, 0), rows)
    newest = board.surely_newest[rows]
    # RACK's RTT is of any that the ACK reports, be it sent before that.
    waits = np.maximum(2 * (time[rows] - time[newest]), time[sent] + board.rtt_max[rows] - time[rows])
    limit = trace.sparse(rows, np.where(times == 1, 2 * board.rtt_max[rows], waits) + 3 * TICK_NS)
    shown[rows] = (times == 1) | (rack(trace) & (times > 1) & (newest >= 0) & (time[newest] > time[sent]))
    moves, again = board.acks & (trace["ack"] > trace.una), board.again & (trace["seq"] <= trace.una)
    begun = shown & ~(trace.latest(shown) > trace.latest(moves | again))
    if not begun.any():
        return NOTHING
    last = np.append(trace.first[1:], len(trace)) - 1  # right for the last rows of connections, which ends it
    ends = trace.following(np.append(trace.first[1:] != trace.first[:-1], [True] * min(len(trace), 1)))
    ends = np.where(ends >= 0, ends, last)

    def when(of: Bools) -> Ints:
        rows = np.where(of, np.arange(len(trace)), trace.following(of))
        return np.asarray(time[np.where(rows >= 0, rows, ends)])

    late = np.minimum(when(again), when(moves)) - time
    return where(
        begun & (late > limit),
        lambda row: (
            f"{trace.una[row]} is not sent again for {ms(late[row])}, with {board.sacked_bytes[row]} bytes SACKed"
        ),
    )
