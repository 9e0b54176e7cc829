# SPDX-License-Identifier: Apache-2.0
"""Every ACK number is RCV.NXT."""

from __future__ import annotations

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


def check(trace: Trace) -> Found:
    less = trace.acks & trace.from_syn & ~trace.refused & (trace["ack"] < trace.rcv_nxt)
    earlier = trace.settled(trace.arrived_to, trace.at_once_ns, less)
    return where(
        less & (earlier > NEVER) & (trace["ack"] < earlier),
        lambda row: f"acknowledges {trace['ack'][row]}; up to {earlier[row]} had arrived",
        lambda: trace.reached(trace.arrived_to, ~trace.out, earlier, less),
    )
