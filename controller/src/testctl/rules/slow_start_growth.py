# SPDX-License-Identifier: Apache-2.0
"""Slow start at most doubles the data in flight in a round trip."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sacks import in_use
from testctl.rules.core.sender import beyond
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import initial_window, new_data, segments

SPEC = RuleSpec(
    name="slow-start-growth",
    must="Up to the first loss, segments in flight are at most the initial window and those acknowledged so far.",
    source="RFC 5681, 3.1",
    level="MUST",
    needs=("start",),
    quote="During slow start, a TCP increments cwnd by at most SMSS bytes for each ACK received that cumulatively "
    "acknowledges new data.",
    linux="A segment for each segment acknowledged, as RFC 3465 counts, without its limit of two for an ACK: "
    "tcp_slow_start(), since 3.13. A tail loss probe adds a segment, and so does one with a FIN, in 6.1, no longer in "
    "6.12: tcp_cwnd_test().",
)


def check(trace: Trace, other: Trace | None) -> Found:
    board = trace.board
    data = new_data(trace) & trace.from_syn
    signs = board.again | (board.acks & (trace["sack1_end"] >= 0))
    same = trace["window"] == trace["window"][np.maximum(trace.latest(board.acks), 0)]
    signs |= board.repeats & same & ~in_use(trace)  # RFC 3042
    calm = trace.count(np.ones(len(trace), np.int64), signs) == 0
    sent = trace.count(trace["segs"], data) + trace["segs"]
    acked = segments(trace, np.maximum(trace.una, 0))
    window = initial_window(trace) + acked
    flight = sent - acked
    probe = (flight == window + 1) & beyond(trace)
    return where(
        data & calm & (flight > window) & ~probe,
        lambda row: f"{flight[row]} segments in flight after {acked[row]} were acknowledged",
        trace.latest(board.acks),
    )
