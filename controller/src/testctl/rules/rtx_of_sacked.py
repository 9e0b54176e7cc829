# SPDX-License-Identifier: Apache-2.0
"""No retransmission of what was acknowledged selectively."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import probe_ns, rack
from testctl.rules.core.spec import NOTHING, SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="rtx-of-sacked",
    must="What SACK blocks have reported is not sent again.",
    source="RFC 2018, 5",
    level="SHOULD",
    needs=SENDER,
    only_if=("retransmission",),
    quote="the data sender will skip that segment during any later retransmission",
    linux="A tail loss probe that was due when the SACK blocks came sends the last segment, reported or not, if losses "
    "are not detected by time (net.ipv4.tcp_recovery=0, before 6.17), which stops its timer: tcp_send_loss_probe().",
)


def check(trace: Trace) -> Found:
    board = trace.board
    sacked = board.delivered_at(trace.end - 1, board.delivered_at(trace["seq"], board.again))
    if not sacked.any():
        return NOTHING
    probe = board.tail & (board.waited >= probe_ns(trace)) & np.bool_(not rack(trace))
    broken = ~probe & board.again & sacked & (trace["seq"] >= trace.una) & trace.from_syn & ~board.reneged
    return where(
        broken,
        lambda row: f"sends {trace['seq'][row]} to {trace.end[row]} again, which a SACK block had reported",
        lambda: trace.latest(board.acks & (trace["sack1_end"] > 0)),
    )
