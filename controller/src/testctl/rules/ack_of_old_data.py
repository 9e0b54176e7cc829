# SPDX-License-Identifier: Apache-2.0
"""An ACK for data that had arrived before."""

from __future__ import annotations

from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-of-old-data",
    must="Data below the next byte that is expected is answered by an ACK, which may be the delayed one.",
    source="RFC 9293, 3.10.7.4",
    level="SHOULD",
    needs=("order", "packets"),
    only_if=("repeat",),
    quote="If an incoming segment is not acceptable, an acknowledgment should be sent in reply",
)
_LIMIT_NS = 500_000_000
"""The most that an ACK may be delayed: the sentence asks for none at once."""


def check(trace: Trace) -> Found:
    below = trace["seq"] + trace["length"] <= trace.rcv_nxt
    old = trace.repeated & trace.from_syn & (trace.rcv_nxt > NEVER) & below & ~trace.refused
    answer = trace.following(trace.acks, old)
    return where(
        trace.late(old, answer, _LIMIT_NS),
        lambda row: f"received {trace['seq'][row]} again, which it had, and sent no ACK",
        answer,
    )
