# SPDX-License-Identifier: Apache-2.0
"""A loss is repaired as soon as it is known."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sacks import in_use
from testctl.rules.core.sender import reordered, sysctl
from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import OPEN, RECOVERY, Events, arrived_by, segments

SPEC = RuleSpec(
    name="recovery-begins",
    must="The ACK with which three segments are SACKed above one that is missing begins a recovery.",
    source="RFC 6675, 5; RFC 8985, 6.2",
    level="MUST",
    needs=("start", "mtu", "order", "segments", "tcp_events"),
    quote="If DupAcks >= DupThresh, go to step (4).",
    linux="Until a reordering was seen, after which RACK's timer may be waited for.  So it may where the ACK moves "
    "past data that was sent before the missing segment: RACK.rtt is then of that, not of what was sent last "
    "(tcp_rack_advance()).",
)
_NO_DUPTHRESH = 4
"""Of net.ipv4.tcp_recovery: RACK's reordering window also behind three SACKed segments (tcp_rack_reo_wnd())."""


def check(trace: Trace) -> Found:
    counted = trace.records.snmp(trace.host)
    if reordered(trace) or counted.get("TcpExt.TCPDSACKRecv") or counted.get("TcpExt.TCPDSACKOfoRecv"):
        return undecided("a reordering, or data that arrived twice, was seen")
    if sysctl(trace, "tcp_recovery", 1) & _NO_DUPTHRESH:
        return undecided("a segment may be late, whatever is SACKed (net.ipv4.tcp_recovery)")
    events = Events(trace)
    at, rows = events.alone
    conn, state = events["conn"][at], events["state"][at]
    known = events["delivered"][at] - segments(trace, events["snd_una"][at], rows)
    none = (state == OPEN) & (trace.board.sack_top[rows] <= events["snd_una"][at]) & (trace["sack1_end"][rows] < 0)
    last = np.maximum.accumulate(np.where(none, np.arange(len(at)), -1))  # when nothing was SACKed
    sacked = known - np.where((last >= 0) & (conn[last] == conn), known[last], 1)
    repaired = trace.highest(trace.end, trace.board.again)[rows] <= events["snd_una"][at]
    # What the ACK moves past has a longer RTT than the missing segment has waited.
    acks = arrived_by(trace, rows)
    missing = trace.sparse(acks, events["snd_una"][at])
    (head, _), (passed, _) = (trace.board.transmitted(missing - back, acks) for back in (0, 1))
    longer = (trace["time_ns"][passed] < trace["time_ns"][head]) & (missing > trace.una)[acks]
    longer &= ~trace.board.delivered_at(missing - 1, trace.sparse(acks, acks >= 0))[acks]
    due = in_use(trace)[rows] & repaired & ~longer
    late = due & (state < RECOVERY) & (sacked >= sysctl(trace, "tcp_reordering", 3))
    counts = events.sparse(at, sacked)
    return events.where(
        events.sparse(at, late), lambda event: f"{counts[event]} segments are SACKed, and no recovery begins"
    )
