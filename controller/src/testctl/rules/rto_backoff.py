# SPDX-License-Identifier: Apache-2.0
"""Each timeout doubles the timer."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import TICK_NS, ms, on_time, paced_ns, rto_max_ns, sysctl, timeouts, timers
from testctl.rules.core.spec import NOTHING, SENDER, Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="rto-backoff",
    must="From a timeout to the next takes twice what it took to it, while nothing arrives.",
    source="RFC 6298, 5.5",
    level="MUST",
    needs=SENDER,
    quote='The host MUST set RTO <- RTO * 2 ("back off the timer").',
    linux="Not for a stream of fewer than four segments in flight if net.ipv4.tcp_thin_linear_timeouts is 1, for six "
    "timeouts (2.6.34): tcp_retransmit_timer(). At most 120 s (TCP_RTO_MAX), or net.ipv4.tcp_rto_max_ms (6.15). A "
    "timer of 64 ticks or more is late by up to an eighth (LVL_GRAN, kernel/time/timer.c), the next may be on time; "
    "the first timeout of a paced sender is later by what is left of its pace (tcp_pacing_delay()).",
)


def check(trace: Trace) -> Found:
    if sysctl(trace, "tcp_thin_linear_timeouts", 0):
        return undecided("net.ipv4.tcp_thin_linear_timeouts is 1")
    if not timers(trace).any():
        return NOTHING
    time = trace["time_ns"]
    at = timeouts(trace)
    last = trace.latest(timers(trace))
    alone = at & (last >= 0) & (last > trace.latest(~trace.out)) & at[last]
    interval = time - time[last]
    # Of the first timeout the timer ran at least since anything else was sent or arrived.
    first = time[last] - time[np.maximum(last - 1, 0)]
    before = np.where(alone[last], interval[last], np.maximum(first - paced_ns(trace)[last], 0))
    return where(
        alone & (interval < np.minimum(2 * on_time(before), rto_max_ns(trace)) - 2 * TICK_NS) & trace.from_syn,
        lambda row: f"a timeout {ms(interval[row])} after the last, which had come after {ms(before[row])}",
        last,
    )
