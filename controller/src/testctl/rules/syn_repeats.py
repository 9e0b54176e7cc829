# SPDX-License-Identifier: Apache-2.0
"""A SYN that is sent again has the same initial sequence number."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, FIN, RST, SYN
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="syn-repeats",
    must="A SYN or SYN-ACK that is sent again has the initial sequence number of the first.",
    source="RFC 6298, 5.4",
    level="MUST",
    any_clock=True,
    quote="Retransmit the earliest segment that has not been acknowledged by the TCP receiver.",
)


def check(trace: Trace) -> Found:
    syn = trace.out & trace.has(SYN)
    before = trace.latest(syn, syn)
    if not (before[syn] >= 0).any():
        return NOTHING
    # Behind a RST or a FIN it may be another connection's.
    over = trace.latest(trace.has(RST) | trace.has(FIN)) > before
    other_kind = trace.has(ACK) != trace.has(ACK)[before]
    return where(
        np.asarray(syn & (before >= 0) & ~over & (other_kind | (trace["seq"] != trace["seq"][before]))),
        lambda row: f"sends a SYN of {trace['seq'][row]} after one of {trace['seq'][before[row]]}",
        before,
    )
