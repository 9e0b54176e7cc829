# SPDX-License-Identifier: Apache-2.0
"""No retransmission of what was acknowledged selectively."""

from __future__ import annotations

from testctl.rules.core.sender import unfit
from testctl.rules.core.spec import Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="rtx-of-sacked",
    must="What SACK blocks have reported is not sent again.",
    source="RFC 2018, 5",
    level="SHOULD",
    quote="the data sender will skip that segment during any later retransmission",
)


def check(trace: Trace, other: Trace | None) -> Found:
    if why := unfit(trace):
        return undecided(why)
    board = trace.board
    sacked = board.delivered_at(trace["seq"]) & board.delivered_at(trace.end - 1)
    reneged = trace.latest(board.acks & board.delivered_at(trace["ack"]) & (trace["ack"] >= trace.una)) >= 0
    broken = board.again & sacked & (trace["seq"] >= trace.una) & trace.from_syn & ~reneged
    return where(
        broken,
        lambda row: f"sends {trace['seq'][row]} to {trace.end[row]} again, which a SACK block had reported",
        trace.latest(board.acks & (trace["sack1_end"] > 0)),
    )
