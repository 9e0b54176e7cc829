# SPDX-License-Identifier: Apache-2.0
"""A tail is probed once."""

from __future__ import annotations

from testctl.rules.core.sender import repeated_timer
from testctl.rules.core.spec import SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="tlp-single",
    must="While nothing arrives the tail is probed once; the next to be sent again is the first not acknowledged.",
    source="RFC 8985, 7.3",
    level="MUST",
    needs=SENDER,
    only_if=("timer",),
    quote="the sender MUST check … First, there is no other previous loss probe still in flight.",
)


def check(trace: Trace) -> Found:
    board = trace.board
    return where(
        board.by_timer & board.tail & ~board.head & repeated_timer(trace) & trace.from_syn,
        lambda row: f"sends the tail from {trace['seq'][row]} on again, after a timer had retransmitted already",
        lambda: trace.latest(board.by_timer),
    )
