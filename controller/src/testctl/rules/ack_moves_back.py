# SPDX-License-Identifier: Apache-2.0
"""No ACK number that moves back."""

from __future__ import annotations

from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-moves-back",
    must="ACK numbers of a connection never decrease.",
    source="RFC 9293, 3.10.7.4",
    level="MUST",
    any_clock=True,
    quote="RCV.NXT is advanced over the data accepted",
)


def check(trace: Trace) -> Found:
    broken = trace.acks & (trace["ack"] < trace.acked)
    return where(
        broken,
        lambda row: f"acknowledges {trace['ack'][row]} after {trace.acked[row]}",
        lambda: trace.latest(trace.acks),
    )
