# SPDX-License-Identifier: Apache-2.0
"""A D-SACK block reports only what arrived twice."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, FIN, SYN
from testctl.rules.core.sacks import blocks
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="dsack-arrived-twice",
    must="A D-SACK block is within what arrived, and some of it arrived again since the last D-SACK block.",
    source="RFC 2883, 4",
    level="MUST",
    needs=("order", "packets"),
    only_if=("sack",),
    quote="A D-SACK block is only used to report a duplicate contiguous sequence of data received by the receiver in "
    "the most recent packet.",
    linux="In FIN-WAIT-1 and FIN-WAIT-2 the ACK of a FIN that had waited for a gap repeats the SACK block that its "
    "number is above: tcp_fin() sends it before tcp_sack_remove().",
)


def check(trace: Trace) -> Found:
    sacks = blocks(trace)
    twice = sacks.duplicate & trace.from_syn[sacks.row]
    rows, start, end = sacks.row[twice], sacks.start[twice], sacks.end[twice]
    if not len(rows):
        return NOTHING
    arrives = ~trace.out & (trace.end > trace["seq"]) & ~trace.has(SYN)
    data = np.flatnonzero(arrives & trace.below)
    partly = np.zeros(len(trace), np.bool_)
    partly[data] = trace.arrivals.part((trace["seq"] + trace.apart)[data], (trace.end + trace.apart)[data]) < data
    last = trace.latest(partly)[rows]
    hit = (last >= 0) & (trace["seq"][last] < end) & (trace.end[last] > start)
    if hit.all():
        return NOTHING
    fin = trace.has(FIN)
    closes = (trace.latest(trace.out & fin) >= 0) & (trace["ack"] == trace.highest(trace.end, ~trace.out & fin))
    ack_before = trace.latest(trace.out & trace.has(ACK))
    broken = np.zeros(len(trace), np.bool_)
    before = np.append(-1, rows[:-1])
    for at in np.flatnonzero(~hit).tolist():
        # Several may have arrived before their ACKs in the capture.
        begin = max(int(trace.instant[before[at]]) if before[at] >= 0 else 0, int(trace.first[rows[at]]))
        again = np.flatnonzero(partly[begin : rows[at]]) + begin
        inside = (trace["seq"][again] < end[at]) & (trace.end[again] > start[at])
        kept = int(ack_before[rows[at]])
        block = (start[at], end[at])
        old = [(trace[f"sack{number}_start"][kept], trace[f"sack{number}_end"][kept]) for number in range(1, 5)]
        repeats = bool(closes[rows[at]]) and block in old and block[0] > trace["ack"][kept]
        broken[rows[at]] = not (inside.any() or repeats)
    return where(
        broken,
        lambda row: f"reports {trace['sack1_start'][row]}:{trace['sack1_end'][row]} as received twice",
        lambda: trace.latest(arrives),
    )
