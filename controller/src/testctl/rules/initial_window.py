# SPDX-License-Identifier: Apache-2.0
"""The initial window."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, RST, SYN, Bools
from testctl.rules.core.sender import beyond
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import first_window, new_data, segments_sent

SPEC = RuleSpec(
    name="initial-window",
    must="Ten segments at most, or what initcwnd says, are sent before data is acknowledged; one after two lost SYNs.",
    source="RFC 6928, 2",
    level="SHOULD",
    needs=("start",),
    quote="the upper bound for the initial window will be min (10*MSS, max (2*MSS, 14600))",
    linux="Ten segments of any size (TCP_INIT_CWND, 2.6.39), where the RFC has 14600 bytes; a first lost SYN doesn't "
    "reduce it to a segment, as RFC 5681, 3.1 asks for: tcp_init_transfer(), since 3.1; nor do two if the answer's "
    "timestamp shows that the first had arrived: tcp_try_undo_spurious_syn(), since 5.2. A tail loss probe adds a "
    "segment, and so does one with a FIN, in 6.1, no longer in 6.12: tcp_cwnd_test().  Hybla's is "
    "larger on long paths: hybla_init().",
)


def check(trace: Trace) -> Found:
    data = new_data(trace) & trace.from_syn
    sent = segments_sent(trace)
    several = data & (sent > 1)
    acked = ~trace.out & (trace["ack"] > 0)
    acked[trace.board.blocks[0]] = True
    acked &= trace.una <= 0
    if not (acked & trace.has(RST)).any() and _had_sent(trace, -1, acked) and _had_sent(trace, 0, acked):
        several &= trace.una <= 0  # which is quicker than `delivered_bytes`
    opens = trace.out & trace.has(SYN)
    syns = trace.count(opens, opens, several)
    if not (several & (syns > 2)).any() and not (several & (sent > first_window(trace))).any():
        return NOTHING
    stamp = trace.highest(trace["tsval"], opens & (trace.latest(opens) < 0))
    answers = ~trace.out & trace.has(ACK) & (trace.una < 0) & (trace["tsecr"] >= 0)
    in_vain = trace.latest(answers & (trace["tsecr"] == stamp)) >= 0
    most = np.where((syns > 2) & ~in_vain, 1, first_window(trace))
    board = trace.board
    probe = (sent == most + 1) & beyond(trace)
    limited = trace.latest(board.repeats) >= 0  # RFC 3042: each duplicate ACK lets a segment go
    return where(
        several & (board.delivered_bytes <= 1) & ~limited & ~board.resent & (sent > most) & ~probe,
        lambda row: f"sends {sent[row]} segments before data is acknowledged; the initial window is {most[row]}",
    )


def _had_sent(trace: Trace, byte: int, rows: Bools) -> bool:
    """Whether it was sent before all of these rows."""
    sent = trace.board.sent & (trace["seq"] <= byte) & (trace.end > byte)
    return bool((trace.latest(sent, rows)[rows] >= 0).all())
