# SPDX-License-Identifier: Apache-2.0
"""Slow start adds all that is acknowledged."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import OPEN, Events

SPEC = RuleSpec(
    name="slow-start-too-slow",
    must="In slow start, while it limits the sender, the window grows by the segments that an ACK acknowledges.",
    source="RFC 5681, 3.1",
    level="SHOULD",
    needs=("segments", "tcp_events"),
    quote="we RECOMMEND that TCP implementations increase cwnd, per: cwnd += min (N, SMSS)",
    linux="By all that the ACK acknowledges, up to ssthresh: tcp_slow_start().",
)
_AS_RENO = ("reno", "cubic", "dctcp", "bic", "htcp", "highspeed", "scalable", "illinois", "westwood")


def check(trace: Trace) -> Found:
    if trace.cc.partition("_")[0] not in _AS_RENO:
        return undecided(f"the slow start of {trace.cc or 'the congestion control'} is its own")
    events = Events(trace)
    was, now, limit = events.before("cwnd"), events["cwnd"], events.before("ssthresh")
    slow = events.kind("ack") & (events["state"] == OPEN) & (events.before("state") == OPEN) & (was < limit)
    slow &= events.follows & (events["snd_una"] > events.before("snd_una")) & (events["prior_pipe"] >= was)
    # Of a loss that a tail loss probe repaired, the reduction begins and ends with one ACK (tcp_process_tlp_ack()).
    probes = events.kind("retransmit") & (events["state"] == OPEN)
    probe = events.last(probes)
    probed = probes[probe] & (events["conn"][probe] == events["conn"])
    slow &= ~(probed & (now == events["ssthresh"]) & (now < limit))
    least = np.minimum(was + events.delivered, np.maximum(np.minimum(events["ssthresh"], limit), was))
    return events.where(
        slow & (now < least),
        lambda at: f"the window goes from {was[at]} to {now[at]}; {events.delivered[at]} segments were acknowledged",
    )
