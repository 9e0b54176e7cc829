# SPDX-License-Identifier: Apache-2.0
"""A SYN-ACK acknowledges the SYN."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="syn-ack-number",
    must="A SYN-ACK acknowledges the SYN, and no more than what came with it.",
    source="RFC 9293, 3.10.7.2",
    level="MUST",
    any_clock=True,
    quote="Set RCV.NXT to SEG.SEQ+1 [...] and a SYN segment sent of the form: <SEQ=ISS><ACK=RCV.NXT><CTL=SYN,ACK>",
)


def check(trace: Trace) -> Found:
    answers = trace.out & trace.has(SYN) & trace.has(ACK) & (trace.rcv_nxt > NEVER)
    return where(
        np.asarray(answers & ((trace["ack"] < 0) | (trace["ack"] > trace.rcv_nxt))),
        lambda row: f"sends a SYN-ACK of {trace['ack'][row]}, where the SYN is followed by 0",
        lambda: trace.latest(~trace.out & trace.has(SYN)),
    )
