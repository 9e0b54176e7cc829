# SPDX-License-Identifier: Apache-2.0
"""Every ACK number is RCV.NXT."""

from __future__ import annotations

from testctl.records.schema import ACK, RST
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-is-rcv-nxt",
    must="An ACK acknowledges all that had arrived without a gap.",
    source="RFC 9293, 3.10.7.4",
    level="MUST",
    needs=("order", "packets"),
    quote="<SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>",
)


def check(trace: Trace, other: Trace | None) -> Found:
    acks = trace.out & trace.has(ACK) & ~trace.has(RST) & trace.from_syn
    earlier = trace.settled(trace.arrived_to, trace.at_once_ns)
    return where(
        acks & ~trace.refused & (earlier > NEVER) & (trace["ack"] < earlier),
        lambda row: f"acknowledges {trace['ack'][row]}; up to {earlier[row]} had arrived",
        trace.reached(trace.arrived_to, ~trace.out, earlier),
    )
