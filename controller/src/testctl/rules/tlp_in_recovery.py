# SPDX-License-Identifier: Apache-2.0
"""A tail is probed while nothing is known to be lost."""

from __future__ import annotations

from testctl.rules.core.sender import probes, unfit
from testctl.rules.core.spec import Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="tlp-in-recovery",
    must="The tail is probed only while no data is SACKed.",
    source="RFC 8985, 7.2",
    level="SHOULD",
    quote="The connection has no SACKed sequences in the SACK scoreboard",
)


def check(trace: Trace, other: Trace | None) -> Found:
    if why := unfit(trace):
        return undecided(why)
    board = trace.board
    return where(
        probes(trace) & ~board.head & (board.sack_top > trace.una) & ~board.reneged & trace.from_syn,
        lambda row: f"probes the tail from {trace['seq'][row]} on; {board.sacked_bytes[row]} bytes were SACKed",
        trace.latest(board.acks),
    )
