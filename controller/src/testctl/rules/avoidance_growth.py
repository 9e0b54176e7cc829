# SPDX-License-Identifier: Apache-2.0
"""Congestion avoidance counts segments, not ACKs."""

from __future__ import annotations

from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import OPEN, Events

SPEC = RuleSpec(
    name="avoidance-growth",
    must="In congestion avoidance the window grows by a segment at the latest when a whole window was acknowledged, "
    "however many segments an ACK covers, while the window is what limits the sender.",
    source="RFC 3465, 2.1",
    level="SHOULD",
    needs=("segments", "tcp_events"),
    quote="When bytes_acked becomes greater than or equal to the value of the congestion window, bytes_acked is "
    "reduced by the value of cwnd.",
    linux="Judged are congestion controls that grow as Reno does, or faster.",
)
_AT_LEAST_RENO = ("reno", "dctcp", "westwood", "scalable", "yeah")


def check(trace: Trace) -> Found:
    if trace.cc.partition("_")[0] not in _AT_LEAST_RENO:
        return undecided(f"{trace.cc or 'the congestion control'} grows in a way of its own")
    events = Events(trace)
    ack, was, now = events.kind("ack"), events.before("cwnd"), events["cwnd"]
    calm = events.follows & (events["state"] == OPEN) & (events.before("state") == OPEN)
    calm &= (events["ssthresh"] == events.before("ssthresh")) & (was >= events["ssthresh"])
    # With the window full as an ACK comes, the window was what limited the last transmission.
    pipe = events["prior_pipe"]
    calm &= ~ack | (pipe == was) & (events["pipe"] == pipe - events.delivered)
    begins = (now != was) | ~calm
    total = events.delivered.cumsum()
    since = total - total[events.last(begins)]
    slow = calm & ack & (since >= was)
    return events.where(slow, lambda at: f"{since[at]} segments were acknowledged, and the window stays {now[at]}")
