# SPDX-License-Identifier: Apache-2.0
"""No timestamps option that the SYN did not offer."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, SYN
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="timestamp-unagreed",
    must="A SYN-ACK has timestamps only if the SYN had, and the packets behind them only if both had.",
    source="RFC 7323, 3.2",
    level="MUST",
    any_clock=True,
    quote="MAY send a TSopt in <SYN,ACK> only if it received a TSopt in the initial <SYN> segment for the connection",
)


def check(trace: Trace) -> Found:
    syn, ack, there = trace.has(SYN), trace.has(ACK), trace["tsval"] >= 0
    unasked = trace.anywhere(syn & ~ack) & ~trace.anywhere(syn & ~ack & there)
    refused = trace.anywhere(syn & ack) & ~trace.anywhere(syn & ack & there)
    return where(
        np.asarray(trace.out & there & (unasked | refused & ~syn)),
        lambda row: f"sends {trace['seq'][row]} with timestamps, which the handshake did not agree on",
    )
