# SPDX-License-Identifier: Apache-2.0
"""An ECN-setup SYN-ACK only answers an ECN-setup SYN."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, CWR, ECE, SYN
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-setup-syn-ack",
    must="A SYN-ACK has ECE without CWR only if a SYN with both had arrived.",
    source="RFC 3168, 6.1.1",
    level="MUST",
    any_clock=True,
    quote="If a host has received an ECN-setup SYN packet, then it MAY send an ECN-setup SYN-ACK packet. Otherwise, it "
    "MUST NOT send an ECN-setup SYN-ACK packet.",
)


def check(trace: Trace) -> Found:
    syn, both = trace.has(SYN), trace.has(ECE) & trace.has(CWR)
    agrees = trace.out & syn & trace.has(ACK) & trace.has(ECE) & ~trace.has(CWR)
    if not agrees.any():
        return NOTHING
    setup = trace.latest(~trace.out & syn & ~trace.has(ACK) & both)
    arrived = trace.latest(~trace.out & syn & ~trace.has(ACK))
    agrees &= trace["ae"] == 0
    return where(
        np.asarray(agrees & (arrived >= 0) & (setup < 0)),
        lambda row: "agrees to ECN in its SYN-ACK, where the SYN did not ask for it",
        arrived,
    )
