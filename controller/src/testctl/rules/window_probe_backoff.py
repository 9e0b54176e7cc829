# SPDX-License-Identifier: Apache-2.0
"""Probes of a zero window become fewer."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, RST
from testctl.rules.core.sender import TICK_NS, rto_max_ns, sysctl
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="window-probe-backoff",
    must="The time between probes of a zero window grows exponentially, up to a minute or more.",
    source="RFC 9293, 3.8.6.1",
    level="SHOULD",
    needs=("order",),
    quote="SHOULD increase exponentially the interval between successive probes (SHLD-30)",
    linux="The interval is doubled net.ipv4.tcp_retries2 times at most (tcp_send_probe0()), and is no longer than "
    "net.ipv4.tcp_rto_max_ms (6.15).",
)
_GROWTH = 1.5
_LONGEST_NS = 60_000_000_000


def check(trace: Trace) -> Found:
    if trace.option("keepalive", "off") != "off":
        return undecided("keepalive probes look like those of a window")
    time = trace["time_ns"]
    acks = ~trace.out & trace.has(ACK) & ~trace.has(RST)
    if not (acks & (trace["window"] == 0)).any():
        return NOTHING
    opened = trace.latest(acks & (trace["window"] > 0))
    closed = trace.latest(acks)
    zero = (closed >= 0) & (closed > opened)
    probes = trace.probes & zero
    last = trace.latest(probes)
    before = np.where(last >= 0, last[last], -1)
    same = probes & (before > opened) & (before >= 0)
    interval, former = time - time[last], time[last] - time[before]
    total = trace.count(np.ones(len(trace), np.int64), probes)
    number = total - np.where(opened >= 0, total[opened], 0)  # of probes before, since the window was open
    grows = number <= sysctl(trace, "tcp_retries2", 15)
    longest = min(_LONGEST_NS, rto_max_ns(trace) - TICK_NS)
    return where(
        same & grows & (interval < np.minimum(_GROWTH * former, longest)),
        lambda row: (
            f"probes the window {interval[row] / 1e6:.0f} ms after the probe before, which had waited "
            f"{former[row] / 1e6:.0f} ms"
        ),
        last,
        before,
    )
