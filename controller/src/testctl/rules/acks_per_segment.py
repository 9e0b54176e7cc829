# SPDX-License-Identifier: Apache-2.0
"""At most a single ACK for every segment that arrives."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, RST
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
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


def check(trace: Trace, other: Trace | None) -> Found:
    edge = trace["ack"] + trace["window"]
    # A keepalive or window probe is a pure ACK too, with a number below the next.
    answers = trace.out & trace.has(ACK) & ~trace.has(RST)
    last = np.where(trace.latest(answers) >= 0, edge[trace.latest(answers)], NEVER)
    acks = trace.out & trace.pure_ack & (edge <= last) & (trace["seq"] >= trace.nxt)
    ones = np.ones(len(trace), np.int64)
    sent, came = trace.count(ones, acks), trace.count(trace["segs"], ~trace.out)
    # What the capture has within an instant may be in another order: counted is from the last ACK of an earlier time.
    instant = trace.instant
    latest = trace.latest(trace.out)
    before = latest[instant]
    update = (before >= 0) & (latest[before] >= 0) & (edge[before] > last[before])  # which answers no packet
    before = np.where(update, latest[before], before)
    known = before >= 0
    since = came - np.where(known, came[before], 0)
    own = sent - sent[instant]
    return where(
        acks & known & (own + 1 > since),
        lambda row: f"sends ACK {own[row] + 1} after {since[row]} packets since the ACK before",
        before,
    )
