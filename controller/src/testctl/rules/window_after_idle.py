# SPDX-License-Identifier: Apache-2.0
"""After an idle time the window is halved for every RTO, and no more."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import TICK_NS, ms, rto_max_ns, rto_min_ns, sysctl
from testctl.rules.core.spec import Found, RuleSpec
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import Events, initial_window

SPEC = RuleSpec(
    name="window-after-idle",
    must="After an idle time the window is halved at most once for every RTO of it, down to the initial window.",
    source="Linux, tcp_cwnd_restart()",
    level="Linux",
    needs=("start", "tcp_events"),
    quote='RFC2861. Reset CWND after idle period longer RTO to "restart window".',
    linux="That it is halved so often is what the rule restart-window asks for.  An RTO is at least SRTT and the "
    "minimum of the RTO, and at most 120 s (TCP_RTO_MAX) or net.ipv4.tcp_rto_max_ms (6.15).",
)


def check(trace: Trace) -> Found:
    events = Events(trace)
    time, before = events["time_ns"], events.before("cwnd")
    last = events.before_each(events.last(events.kind("send", "retransmit")))
    quiet = time - time[last]
    begins = events.kind("send") & events.follows & events.same(last) & (events["prior_pipe"] == 0)
    rto = np.maximum(events.before("srtt_us"), 0) * 1000 + rto_min_ns(trace)
    rto = np.minimum(rto, rto_max_ns(trace) - TICK_NS)
    halved = np.minimum(quiet // rto, 40) * bool(sysctl(trace, "tcp_slow_start_after_idle", 1))
    least = np.maximum(before >> halved, np.minimum(before, initial_window(trace)))
    return events.where(
        begins & (events["cwnd"] < least),
        lambda at: f"falls from {before[at]} to {events['cwnd'][at]} after {ms(quiet[at])} idle; at least {least[at]}",
    )
