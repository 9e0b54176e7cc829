# SPDX-License-Identifier: Apache-2.0
"""A loss is three duplicate ACKs, where it isn't detected by time."""

from __future__ import annotations

from testctl.rules.core.sender import begins_recovery, rack, rto_min_ns, sysctl
from testctl.rules.core.spec import NOTHING, SENDER, Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="dup-threshold",
    must="Without RACK, a fast retransmission follows three duplicate ACKs, or more than two segments SACKed above it.",
    source="RFC 6675, 4",
    level="MUST",
    needs=SENDER,
    quote="more than (DupThresh - 1) * SMSS bytes with sequence numbers greater than 'SeqNum' have been SACKed",
    linux="By default losses are detected by time (RFC 8985, net.ipv4.tcp_recovery=1, since 4.18), always since 6.17 "
    "(1c120191dcec): see rack-too-early. Three segments are enough, however small: tcp_force_fast_retransmit().",
)


def check(trace: Trace) -> Found:
    if rack(trace):
        return undecided("losses are detected by time")
    if not trace.board.again.any():
        return NOTHING
    board = trace.board
    threshold = sysctl(trace, "tcp_reordering", 3)
    few = (
        (board.sacked_bytes <= (threshold - 1) * trace.mss)
        & (board.sacked_segments < threshold)
        & (board.duplicates < threshold)
        & ~board.without_sack
    )
    soon = (board.waited < rto_min_ns(trace)) & ~board.delivered_at(trace["seq"], board.again)
    return where(
        begins_recovery(trace) & few & soon & trace.from_syn,
        lambda row: (
            f"sends {trace['seq'][row]} again after {board.duplicates[row]} duplicate ACKs, "
            f"{board.sacked_bytes[row]} bytes SACKed"
        ),
        lambda: trace.latest(board.acks),
    )
