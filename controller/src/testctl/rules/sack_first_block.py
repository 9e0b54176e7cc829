# SPDX-License-Identifier: Apache-2.0
"""The first SACK block has the segment that came last."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.sacks import blocks
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="sack-first-block",
    must="The first SACK block has the segment that triggered the ACK, unless that advanced the ACK number.",
    source="RFC 2018, 4",
    level="MUST",
    needs=("order", "packets"),
    only_if=("sack",),
    quote="The first SACK block (i.e., the one immediately following the kind and length fields in the option) MUST "
    "specify the contiguous block of data containing the segment which triggered this ACK",
)


def check(trace: Trace) -> Found:
    sacks = blocks(trace)
    first = (sacks.number == 0) & ~sacks.duplicate & trace.from_syn[sacks.row]
    rows, start, end = sacks.row[first], sacks.start[first], sacks.end[first]
    came = trace.taken & (trace.data | trace.has(FIN))
    trigger = trace.latest(came)[rows]
    known = trigger >= 0
    seq = trace["seq"][trigger]
    # A duplicate is a D-SACK's. A segment that advanced the ACK number asks for nothing; so it does where the ACK is of
    # several packets.
    advances = trace.arrived_to > trace.rcv_nxt
    old = trace.end <= trace.rcv_nxt  # whose ACK repeats the block, without D-SACK
    suspects = np.flatnonzero(
        known
        & ~trace.refused[rows]
        & ~(advances | old)[trigger]
        & (trace.rcv_nxt[trigger] > NEVER)
        & ((seq < start) | (seq >= end))
    )
    broken = np.zeros(len(trace), np.bool_)
    # Several may have arrived before their ACKs in the capture: any of those since the last ACK of an earlier time; and
    # of those behind a gap at that time, where they had fewer ACKs, for a compressed ACK waits for its timer.
    behind = came & ~advances & ~old
    acks = trace.latest(trace.out)[trace.instant]
    for at in suspects.tolist():
        begin = max(int(acks[rows[at]]), int(trace.first[rows[at]]))
        others = np.flatnonzero(came[begin : rows[at]]) + begin
        excused = (advances | old)[others].any()
        batch = slice(int(trace.instant[begin]), begin + 1)
        if np.count_nonzero(behind[batch]) > np.count_nonzero(trace.out[batch]):
            others = np.append(others, np.flatnonzero(behind[batch]) + batch.start)
        inside = (trace["seq"][others] >= start[at]) & (trace["seq"][others] < end[at])
        broken[rows[at]] = not (excused or inside.any())
    return where(
        broken,
        lambda row: (
            f"reports {trace['sack1_start'][row]}:{trace['sack1_end'][row]} first, without the segment that came last"
        ),
        lambda: trace.latest(came),
    )
