# SPDX-License-Identifier: Apache-2.0
"""An ACK for at least every second full-sized segment."""

from __future__ import annotations

from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-every-second-segment",
    must="Where two full-sized segments have arrived in order since the last ACK, the next leaves at once.",
    source="RFC 5681, 4.2; RFC 9293, 3.8.6.3",
    level="SHOULD",
    needs=("order", "packets", "reads"),
    quote="an ACK SHOULD be generated for at least every second full-sized segment",
    linux="A GRO aggregate counts as a single segment, and so it does here. While the application leaves data unread, "
    "so that the window would shrink, the ACK waits for it to read, or for the delayed ACK (__tcp_ack_snd_check()).",
)

_INITIAL = 536
"""What a receiver takes for a full segment until a longer one comes (TCP_MSS_DEFAULT)."""


def check(trace: Trace) -> Found:
    mss = trace.peer_mss
    came = trace.taken & trace.data & trace.from_syn & (trace.rcv_nxt > NEVER) & (trace.acked > NEVER)
    there = trace.arrived_to
    if not came.any() or mss < _INITIAL:
        return NOTHING
    owed = came & (there > trace.rcv_nxt) & (there - trace.acked >= 2 * mss) & ~trace.refused
    owed &= trace["time_ns"] < trace.reads_until_ns
    answer = trace.reached(trace["ack"], trace.acks, there - 2 * mss + 1, owed)
    # Of a window that does not grow all is in use: an application that gets its turn later holds the ACK back.
    held = (answer >= 0) & (trace["window"][answer] <= trace["window"][trace.latest(trace.acks)])
    return where(
        trace.late(owed & ~held, answer, trace.at_once_ns) | trace.late(owed & held, answer, 10 * trace.at_once_ns),
        lambda row: f"received up to {there[row]} and had acknowledged {trace.acked[row]}; segments have {mss} bytes",
        answer,
    )
