# SPDX-License-Identifier: Apache-2.0
"""ECE from the first CE until CWR."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import CWR, ECE
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-echo",
    must="From data with CE on, all ACKs have ECE until CWR arrives.",
    source="RFC 3168, 6.1.3",
    level="MUST",
    needs=("order", "packets"),
    only_if=("classic_ecn",),
    quote="that TCP receiver continues to set the ECN-Echo flag in all the ACK packets it sends [...] until it "
    "receives a CWR packet",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    if trace.dctcp:
        return Found()
    if not ecn.marked.any():
        return NOTHING
    since = trace.latest(ecn.marked & ecn.acceptable)
    reset = trace.latest(~trace.out & trace.has(CWR))
    echoing = (since >= 0) & (since >= reset) & (since < trace.instant)
    broken = ecn.answers & ecn.classic & ~ecn.ended & echoing & ~trace.has(ECE) & (trace.reading_ns == 0)
    return where(
        np.asarray(broken),
        lambda row: (
            f"sends an ACK of {trace['ack'][row]} without ECE; {trace['seq'][since[row]]} had arrived with CE, and no "
            "CWR since"
        ),
        since,
    )
