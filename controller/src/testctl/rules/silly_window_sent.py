# SPDX-License-Identifier: Apache-2.0
"""A sender does not fill small windows."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import PSH, SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.sender import full_segment, sysctl
from testctl.rules.core.spec import Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="silly-window-sent",
    must="A segment is cut to what the window leaves only if that is half of the largest window, or after a timeout.",
    source="RFC 9293, 3.8.6.2.1",
    level="MUST",
    needs=("mtu", "order"),
    quote="A TCP implementation MUST include a SWS avoidance algorithm in the sender (MUST-38).",
    linux="What the window leaves behind full-sized segments is sent with them, unless Nagle's algorithm holds it "
    "(tcp_mss_split_point()); a full-sized segment has half of the largest window at most (tcp_bound_to_half_wnd()).",
)
_OVERRIDE_NS = 100_000_000
"""The least override timeout: "in the range 0.1 - 1.0 seconds"."""


def check(trace: Trace) -> Found:
    if sysctl(trace, "tcp_mtu_probing", 0):
        return undecided("segments change their size while the path MTU is probed (net.ipv4.tcp_mtu_probing)")
    time, seq, length = trace["time_ns"], trace["seq"], trace["length"]
    fresh = trace.out & trace.data & (seq >= trace.nxt) & (trace.edge > NEVER)
    at = np.flatnonzero(fresh & (trace.end >= trace.edge))
    at = at[seq[at] + length[at] == trace.edge[at]]
    largest, mss = trace.highest(trace["window"], ~trace.out, trace.sparse(at, at >= 0))[at], full_segment(trace)[at]
    # What was written before the window grew has its first size.
    first = np.minimum(np.maximum(trace.highest(trace["window"], ~trace.out & trace.has(SYN))[at] // 2, 1), mss)
    cut = trace.sparse(at, (length[at] % mss > 0) & (length[at] % first > 0))
    at, largest, mss = (values[cut[at]] for values in (at, largest, mss))
    part = length[at] % mss
    # The end of what there was to send may lie at the edge by chance: it is pushed.
    before, more = trace.latest(fresh, cut)[at], trace.following(fresh, cut)[at]
    waited = time[at] - time[before]
    together = (waited == 0) & (seq[before] + length[before] == seq[at]) & (length[before] % mss == 0)
    # What the window cuts loses the flag (tso_fragment()): with it an application's write ends at the edge by chance.
    small = (2 * part < largest) & (length[at] <= mss) & ~together & ~trace.has(PSH)[at]
    return where(
        trace.sparse(at, small & (more >= 0) & (before >= 0) & (waited < _OVERRIDE_NS)),
        lambda row: f"sends {length[row]} bytes up to the window's edge; segments have {trace.mss}",
        lambda: trace.latest(~trace.out),
    )
