# SPDX-License-Identifier: Apache-2.0
"""At most a single ACK for every segment that arrives."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="acks-per-segment",
    must="ACKs that do not change the window are at most as many as the packets that arrived since the last ACK.",
    source="RFC 5681, 4.2",
    level="MUST",
    needs=("order",),
    quote="A TCP receiver MUST NOT generate more than one acknowledgment for every incoming segment, other than to "
    "update the offered window",
)


def check(trace: Trace) -> Found:
    # A keepalive or window probe is a pure ACK too, with a number below the next.
    pure = trace.out & trace.pure_ack & (trace["seq"] >= trace.nxt)
    edge, last = trace.limit, trace.latest(trace.acks, pure)
    at = np.flatnonzero(pure)
    at = at[(last[at] >= 0) & (edge[at] <= edge[last[at]])]
    if not len(at):
        return NOTHING
    acks = trace.sparse(at, np.ones(len(at), np.bool_))
    sent, came = trace.count(acks, acks), trace.count(trace["segs"], ~trace.out)
    # What the capture has within an instant may be in another order: counted is from the last ACK of an earlier time.
    instant = trace.instant[at]
    latest, last = trace.latest(trace.out), trace.latest(trace.acks)
    before = latest[instant]
    former = np.where(last[before] >= 0, edge[last[before]], NEVER)
    update = (before >= 0) & (latest[before] >= 0) & (edge[before] > former)  # which answers no packet
    before = np.where(update, latest[before], before)
    known = before >= 0
    since = trace.sparse(at, came[at] - np.where(known, came[before], 0))
    own = trace.sparse(at, sent[at] - sent[instant])
    # So it is within that ACK's own, where it may be for the first of what came.
    first = np.maximum(before, 0)
    begin, left = trace.instant[first], trace.count(np.ones(len(trace), np.int64), trace.out)
    known &= left[first] - left[begin] + 1 + sent[at] - sent[instant] >= came[at] - came[begin]
    return where(
        trace.sparse(at, known) & (own + 1 > since),
        lambda row: f"sends ACK {own[row] + 1} after {since[row]} packets since the ACK before",
        trace.sparse(at, before),
    )
