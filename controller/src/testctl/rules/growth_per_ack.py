# SPDX-License-Identifier: Apache-2.0
"""The window grows by no more than was acknowledged."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import DISORDER, OPEN, Events

SPEC = RuleSpec(
    name="growth-per-ack",
    must="At an ACK outside of loss recovery the congestion window grows by no more segments than were delivered.",
    source="RFC 5681, 3.1",
    level="SHOULD",
    needs=("tcp_events",),
    quote="we RECOMMEND that TCP implementations increase cwnd, per: cwnd += min (N, SMSS)",
    linux="By all that the ACK acknowledges, as RFC 3465 counts, without its limit of two segments: tcp_slow_start(), "
    "since 3.13 (9f9843a751d0). Above ssthresh by a segment more, for those acknowledged before: tcp_cong_avoid_ai(). "
    "nv raises its window to two segments first: tcpnv_acked(). When D-SACK blocks show that a reduction was wrong the "
    "window is what it was before: tcp_try_undo_dsack().",
)
_NV_LEAST = 2
"""nv_min_cwnd, segments."""


def check(trace: Trace) -> Found:
    if trace.cc.startswith("bbr"):
        return undecided("bbr restores the window that it had before it probed for the RTT")
    if trace.cc == "hybla":
        return undecided("hybla grows by more than a segment for each delivered where the RTT is longer than 25 ms")
    events = Events(trace)
    calm = (events["state"] == OPEN) & (events.before("state") == OPEN) & events.follows
    calm &= events["ssthresh"] <= events.before("ssthresh")  # an undo raises it, or leaves it where it was
    reduces = (events["state"] > DISORDER) & (events.before("state") <= DISORDER) & events.follows
    last = np.maximum.accumulate(np.where(reduces, np.arange(len(events)), -1)) if len(events) else reduces
    calm &= (last < 0) | (events["conn"][last] != events["conn"]) | (events["cwnd"] != events.before("cwnd")[last])
    was = events.before("cwnd")
    growth = events["cwnd"] - was
    delivered = events.delivered
    most = delivered + (events["cwnd"] > events["ssthresh"])
    if trace.cc == "nv":
        most += np.maximum(_NV_LEAST - was, 0)
    return events.where(
        events.kind("ack") & calm & (growth > most),
        lambda at: f"the window grew by {growth[at]} segments to {events['cwnd'][at]}; {delivered[at]} were delivered",
    )
