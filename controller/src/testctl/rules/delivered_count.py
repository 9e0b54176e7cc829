# SPDX-License-Identifier: Apache-2.0
"""A sender counts as delivered all that ACKs report, and no more."""

from __future__ import annotations

import numpy as np

from testctl.core.words import counted
from testctl.records.schema import Ints
from testctl.rules.core.sacks import exact_acks
from testctl.rules.core.spec import Found, RuleSpec
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import Events

SPEC = RuleSpec(
    name="delivered-count",
    must="An ACK delivers as many segments as it acknowledges for the first time, cumulatively or by SACK.",
    source="RFC 6937, 3",
    level="MUST",
    needs=("start", "mtu", "order", "segments", "tcp_events"),
    quote="DeliveredData = change_in(snd.una) + change_in(SACKd)",
    linux="A segment that a D-SACK block reports counts once more, as long as they are no more than the "
    "retransmissions: tcp_dsack_seen(). Connections without SACK are not judged; there a duplicate ACK delivers one "
    "segment.",
)


def check(trace: Trace) -> Found:
    events = Events(trace)
    at, rows = events.alone
    off = events["delivered"][at] - (trace.board.delivered_segments + _twice(trace))[rows]
    same = np.append(np.zeros(min(len(at), 1), np.bool_), events["conn"][at[1:]] == events["conn"][at[:-1]])
    more = np.where(same & exact_acks(trace)[rows] & ~trace.board.reneged[rows], off - np.append(off[:1], off[:-1]), 0)
    wrong = events.sparse(at, more)
    return events.where(
        wrong != 0,
        lambda event: f"counts {counted(abs(wrong[event]), 'segment')} too {'many' if wrong[event] > 0 else 'few'}",
    )


def _twice(trace: Trace) -> Ints:
    """Segments that D-SACK blocks had reported, the row included."""
    rows, start, end = trace.blocks(1, trace.board.acks)
    inner, outer_start, outer_end = trace.blocks(2, trace.board.acks)
    below = start < trace["ack"][rows]
    within = (start >= trace.sparse(inner, outer_start)[rows]) & (end <= trace.sparse(inner, outer_end)[rows])
    twice = below | within
    segments = trace.sparse(rows[twice], np.maximum(-(-(end - start) // max(trace.mss, 1)), 1)[twice])
    total = trace.count(segments, segments > 0) + segments
    segments[total > trace.count(trace["segs"], trace.board.again)] = 0
    return np.asarray(trace.count(segments, segments > 0) + segments)
