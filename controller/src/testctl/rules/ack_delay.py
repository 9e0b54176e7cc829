# SPDX-License-Identifier: Apache-2.0
"""No ACK is delayed by more than half a second."""

from __future__ import annotations

from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-delay",
    must="What arrives in order is acknowledged within 500 ms.",
    source="RFC 5681, 4.2; RFC 9293, 3.8.6.3",
    level="MUST",
    needs=("order", "packets"),
    quote="MUST be generated within 500 ms of the arrival of the first unacknowledged packet",
)
_LIMIT_NS = 500_000_000


def check(trace: Trace) -> Found:
    there = trace.arrived_to
    came = ~trace.out & trace.from_syn & (trace.rcv_nxt > NEVER) & (there > trace.rcv_nxt) & ~trace.refused
    answer = trace.reached(trace["ack"], trace.acks, there, came)
    return where(
        trace.late(came, answer, _LIMIT_NS),
        lambda row: f"received up to {there[row]}, which no ACK covers within 500 ms",
        answer,
    )
