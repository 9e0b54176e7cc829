# SPDX-License-Identifier: Apache-2.0
"""SYN-ACKs are sent again by the timer, or for another SYN."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, SYN
from testctl.rules.core.sender import RTO_FIRST_NS, TICK_NS, ms, on_time, rto_max_ns
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="synack-backoff",
    must="A SYN-ACK is sent again at once for a SYN, else after 1 s at least, and each time after twice the time.",
    source="RFC 6298, 2.1 and 5.5",
    level="MUST",
    needs=("order", "packets"),
    any_clock=True,
    quote="The host MUST set RTO <- RTO * 2",
    linux="At most 120 s (TCP_RTO_MAX), or the listener's net.ipv4.tcp_rto_max_ms: tcp_reqsk_timeout().",
)


def check(trace: Trace) -> Found:
    time = trace["time_ns"]
    reply = trace.out & trace.has(SYN) & trace.has(ACK)
    asks = ~trace.out & trace.has(SYN)
    cause = trace.latest(asks)
    by_timer = reply & (trace.latest(reply) > cause)
    if not by_timer.any():
        return NOTHING
    begun = reply & ~by_timer
    last = trace.latest(by_timer | begun)
    interval = np.where(by_timer, time - time[last], 0)
    # A SYN that came again has its own answer, and the timer begins anew or runs on.
    doubled = np.minimum(2 * np.where(last >= 0, on_time(interval[last]), 0), rto_max_ns(trace))
    least = np.maximum(RTO_FIRST_NS, doubled) - 2 * TICK_NS
    return where(
        by_timer & (interval < least),
        lambda row: f"sends the SYN-ACK again after {ms(interval[row])}, before after {ms(interval[last[row]])}",
        last,
    )
