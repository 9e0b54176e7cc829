# SPDX-License-Identifier: Apache-2.0
"""A D-SACK block reports only what arrived twice."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN
from testctl.rules.core.sacks import blocks
from testctl.rules.core.spec import Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="dsack-arrived-twice",
    must="A D-SACK block is within what arrived, and some of it arrived again since the last D-SACK block.",
    source="RFC 2883, 4",
    level="MUST",
    quote="A D-SACK block is only used to report a duplicate contiguous sequence of data received by the receiver in "
    "the most recent packet.",
)


def check(trace: Trace, other: Trace | None) -> Found:
    if why := trace.delayed or trace.incomplete:
        return undecided(why)
    sacks = blocks(trace)
    twice = sacks.duplicate & trace.from_syn[sacks.row]
    rows, start, end = sacks.row[twice], sacks.start[twice], sacks.end[twice]
    if not len(rows):
        return Found()
    data = np.flatnonzero(~trace.out & (trace.data | trace.has(FIN)))
    first = (trace["seq"] + trace.apart)[data]
    partly = np.zeros(len(trace), np.bool_)
    partly[data] = trace.arrivals.part(first, (trace.end + trace.apart)[data]) < data
    last = trace.latest(partly)[rows]
    hit = (last >= 0) & (trace["seq"][last] < end) & (trace.end[last] > start)
    broken = np.zeros(len(trace), np.bool_)
    before = np.append(-1, rows[:-1])
    for at in np.flatnonzero(~hit).tolist():
        # Several may have arrived before their ACKs in the capture.
        begin = max(int(trace.instant[before[at]]) if before[at] >= 0 else 0, int(trace.first[rows[at]]))
        again = np.flatnonzero(partly[begin : rows[at]]) + begin
        inside = (trace["seq"][again] < end[at]) & (trace.end[again] > start[at])
        broken[rows[at]] = not inside.any()
    return where(
        broken,
        lambda row: f"reports {trace['sack1_start'][row]}:{trace['sack1_end'][row]} as received twice",
        trace.latest(~trace.out & trace.data),
    )
