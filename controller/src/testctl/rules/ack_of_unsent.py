# SPDX-License-Identifier: Apache-2.0
"""No ACK of what never arrived."""

from __future__ import annotations

from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-of-unsent",
    must="An ACK number is at most the end of what has arrived without a gap.",
    source="RFC 9293, 3.4",
    level="MUST",
    needs=("start",),
    any_clock=True,
    quote="the acknowledgment number is the sequence number of the next octet the sender of the segment expects",
)


def check(trace: Trace) -> Found:
    return where(
        trace.acks & trace.from_syn & (trace.rcv_nxt > NEVER) & (trace["ack"] > trace.rcv_nxt),
        lambda row: f"acknowledges {trace['ack'][row]}, but only up to {trace.rcv_nxt[row]} had arrived",
        lambda: trace.latest(~trace.out),
    )
