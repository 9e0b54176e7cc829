# SPDX-License-Identifier: Apache-2.0
"""Slow start at most doubles the data in flight in a round trip."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sacks import in_use
from testctl.rules.core.sender import beyond
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import HYBLA_RTT0_NS, first_window, new_data, segments, segments_sent

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
    "6.12: tcp_cwnd_test(). Hybla adds 2^(RTT / 25 ms) - 1 segments, if the RTT is longer than that: "
    "hybla_cong_avoid().",
)
_BBR_LEAST = 4
"""Segments that an ACK raises BBR's window to at least (bbr_cwnd_min_target)."""


def check(trace: Trace) -> Found:
    board = trace.board
    data = new_data(trace) & trace.from_syn
    rows, end = trace.others("sack1_end")
    signs = board.again | (board.acks & trace.sparse(rows, end >= 0))
    repeats = np.flatnonzero(board.repeats & ~in_use(trace))  # RFC 3042
    last = np.maximum(trace.latest(board.acks, board.repeats)[repeats], 0)
    signs[repeats] |= trace["window"][repeats] == trace["window"][last]
    window, sent = first_window(trace), segments_sent(trace)
    if trace.cc.startswith("bbr"):
        window = max(window, _BBR_LEAST)
    at = np.flatnonzero(data & (trace.latest(signs, data) < 0) & (sent > window))
    una = np.maximum(trace.una[at], 0)
    if not (data & (trace["seq"] != trace.nxt)).any():  # no segment is larger than the MSS
        at = at[(sent[at] - window) * trace.mss > 2 * (np.minimum(una, trace.nxt[at]) - 1)]
    acked = trace.sparse(at, segments(trace, np.maximum(trace.una[at], 0), at))
    flight = trace.sparse(at, sent[at] - acked[at])
    most = window + acked
    if trace.cc == "hybla":
        rtt = np.maximum(board.rtt_max, board.rtt_echoed)[at] + trace.at_once_ns
        most[at] += (acked[at] * np.maximum(np.exp2(np.minimum(rtt / HYBLA_RTT0_NS, 17)) - 2, 0)).astype(np.int64)
    broken = trace.sparse(at, flight[at] > most[at])
    if not broken.any():
        return NOTHING
    probe = (flight == most + 1) & beyond(trace)
    return where(
        broken & ~probe,
        lambda row: f"{flight[row]} segments in flight after {acked[row]} were acknowledged",
        lambda: trace.latest(board.acks),
    )
