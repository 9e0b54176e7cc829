# SPDX-License-Identifier: Apache-2.0
"""SYNs are sent again by the timer, which doubles."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, SYN
from testctl.rules.core.sender import RTO_FIRST_NS, TICK_NS, kernel, ms, on_time, rto_max_ns, sysctl
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="syn-backoff",
    must="A SYN is sent again after 1 s at least, and each time after twice the time before.",
    source="RFC 6298, 2.1 and 5.5",
    level="MUST",
    needs=("order",),
    any_clock=True,
    quote="Until a round-trip time (RTT) measurement has been made …, the sender SHOULD set RTO <- 1 second",
    linux="Since 6.5 the first four intervals are 1 s each: net.ipv4.tcp_syn_linear_timeouts, ip-sysctl.rst. They "
    "grow to 120 s (TCP_RTO_MAX), or net.ipv4.tcp_rto_max_ms (6.15).",
)


def check(trace: Trace) -> Found:
    time = trace["time_ns"]
    syn = trace.out & trace.has(SYN) & ~trace.has(ACK)
    last = trace.latest(syn)
    again = syn & (last >= 0)
    if not again.any():
        return NOTHING
    interval = np.where(again, time - time[last], 0)
    number = trace.count(np.ones(len(trace), np.int64), syn)  # of this retry, from 1
    linear = sysctl(trace, "tcp_syn_linear_timeouts", 4) if kernel(trace) >= (6, 5) else 0
    before = 2 * on_time(interval[last])
    doubled = np.where(number > linear + 1, before, 0) if linear else before
    least = np.maximum(RTO_FIRST_NS, np.minimum(doubled, rto_max_ns(trace))) - 2 * TICK_NS
    return where(
        again & (interval < least),
        lambda row: (
            f"retry {number[row]} of the SYN after {ms(interval[row])}, the one before {ms(interval[last[row]])}"
        ),
        last,
    )
