# SPDX-License-Identifier: Apache-2.0
"""Congestion avoidance adds a segment for each window that is acknowledged."""

from __future__ import annotations

from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import OPEN, Events

SPEC = RuleSpec(
    name="reno-growth",
    must="In congestion avoidance the window of Reno and DCTCP grows by no more than a segment for each window of "
    "segments acknowledged.",
    source="RFC 5681, 3.1",
    level="MUST",
    needs=("segments", "tcp_events"),
    quote="During congestion avoidance, cwnd is incremented by roughly 1 full-sized segment per round-trip time (RTT).",
    linux="What an ACK acknowledges beyond a window counts for the next: tcp_cong_avoid_ai().",
)


def check(trace: Trace) -> Found:
    if trace.cc.partition("_")[0] not in ("reno", "dctcp"):
        return undecided(f"{trace.cc or 'the congestion control'} grows in a way of its own")
    events = Events(trace)
    was, now, ssthresh = events.before("cwnd"), events["cwnd"], events["ssthresh"]
    calm = events.follows & (events["state"] == OPEN) & (events.before("state") == OPEN) & (now >= was)
    calm &= (was >= ssthresh) & (ssthresh == events.before("ssthresh"))
    grows = calm & (now > was)
    total = events.delivered.cumsum()
    last = events.before_each(events.last(grows | ~calm))
    since = total - total[last]
    fast = grows & grows[last] & (since + events.delivered[last] < was * (now - was))
    return events.where(
        fast,
        lambda at: f"the window grows from {was[at]} to {now[at]}, {since[at]} segments after it grew last",
    )
