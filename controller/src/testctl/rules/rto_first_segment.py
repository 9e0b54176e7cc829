# SPDX-License-Identifier: Apache-2.0
"""A timeout sends the first segment again."""

from __future__ import annotations

from testctl.rules.core.sender import ms
from testctl.rules.core.spec import SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="rto-first-segment",
    must="What a timer sends again is the first segment not acknowledged; of a tail loss probe, the last.",
    source="RFC 6298, 5.4",
    level="MUST",
    needs=SENDER,
    only_if=("timer",),
    quote="Retransmit the earliest segment that has not been acknowledged by the TCP receiver.",
)


def check(trace: Trace) -> Found:
    board = trace.board
    return where(
        board.by_timer & ~board.head & ~board.tail & trace.from_syn,
        lambda row: (
            f"sends {trace['seq'][row]} again {ms(board.waited[row])} after it was sent, without an ACK that shows "
            f"its loss; the first not acknowledged is {trace.una[row]}, the end {trace.nxt[row]}"
        ),
        lambda: board.last_sent,
        lambda: trace.latest(board.acks),
    )
