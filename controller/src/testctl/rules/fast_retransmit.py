# SPDX-License-Identifier: Apache-2.0
"""A loss that ACKs show is repaired before the timer runs out."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import Bools, Ints
from testctl.rules.core.sender import TICK_NS, ms, sysctl
from testctl.rules.core.spec import NOTHING, SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="fast-retransmit",
    must="The first segment not acknowledged is sent again at the latest two RTTs after more than three segments above "
    "it were SACKed.",
    source="RFC 5681, 3.2",
    level="SHOULD",
    needs=SENDER,
    only_if=("sack",),
    quote="After receiving 3 duplicate ACKs, TCP performs a retransmission of what appears to be the missing segment, "
    "without waiting for the retransmission timer to expire.",
    linux="After reordering was seen, RACK waits for its window, an RTT at most: tcp_rack_reo_wnd().",
)


def check(trace: Trace) -> Found:
    board = trace.board
    time = trace["time_ns"]
    threshold = max(3, sysctl(trace, "tcp_reordering", 3))
    shown = (board.sacked_bytes > threshold * trace.mss) & (trace.nxt > trace.una) & trace.from_syn
    rows = np.flatnonzero(shown)
    shown[rows] = board.transmitted(np.maximum(trace.una, 0), rows)[1] == 1
    moves = board.acks & (trace["ack"] > trace.una)
    begun = shown & ~(trace.latest(shown) > trace.latest(moves))
    if not begun.any():
        return NOTHING
    last = np.append(trace.first[1:], len(trace)) - 1  # right for the last rows of connections, which ends it
    ends = trace.following(np.append(trace.first[1:] != trace.first[:-1], [True] * min(len(trace), 1)))
    ends = np.where(ends >= 0, ends, last)

    def when(of: Bools) -> Ints:
        rows = np.where(of, np.arange(len(trace)), trace.following(of))
        return np.asarray(time[np.where(rows >= 0, rows, ends)])

    repaired = np.minimum(when(board.again & (trace["seq"] <= trace.una)), when(moves))
    limit = 2 * board.rtt_max + 3 * TICK_NS
    late = repaired - time
    return where(
        begun & (late > limit),
        lambda row: (
            f"{trace.una[row]} is not sent again for {ms(late[row])}, with {board.sacked_bytes[row]} bytes SACKed"
        ),
    )
