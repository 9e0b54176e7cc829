# SPDX-License-Identifier: Apache-2.0
"""Data that is late by less than the reordering window isn't lost."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sacks import in_use
from testctl.rules.core.sender import begins_recovery, ms, rack
from testctl.rules.core.spec import NOTHING, SENDER, Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="rack-too-early",
    must="A loss is detected no sooner than an RTT after the transmission, and a quarter of the least RTT later while "
    "fewer than three segments are SACKed and no recovery is under way.",
    source="RFC 8985, 6.2",
    level="MUST",
    needs=SENDER,
    quote="Segment.xmit_ts + RACK.rtt + RACK.reo_wnd - Now() <= 0",
    linux="With SACK, as the RFC asks for; without it losses are detected as in RFC 6582: tcp_identify_packet_loss().",
)
_GRAIN_NS = 2_000
"""Linux measures in whole µs."""


def check(trace: Trace) -> Found:
    if not rack(trace):
        return undecided("losses are not detected by time (net.ipv4.tcp_recovery)")
    if not trace.board.again.any():
        return NOTHING
    board = trace.board
    few = begins_recovery(trace) & (board.sacked_bytes <= 2 * trace.mss) & (board.sacked_segments < 3)
    few &= board.duplicates < 3
    least = board.rtt_min + np.where(few, board.rtt_min // 4, 0) - _GRAIN_NS
    broken = board.evidence & in_use(trace) & (board.last_sent >= 0) & (board.waited < least) & trace.from_syn
    return where(
        broken,
        lambda row: (
            f"sends {trace['seq'][row]} again {ms(board.waited[row])} after it was sent; the shortest RTT is "
            f"{ms(board.rtt_min[row])}, {board.sacked_bytes[row]} bytes are SACKed"
        ),
        lambda: board.last_sent,
        lambda: trace.latest(board.acks),
    )
