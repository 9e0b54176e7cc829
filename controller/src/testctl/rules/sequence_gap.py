# SPDX-License-Identifier: Apache-2.0
"""New data leaves no gap."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN, RST
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="sequence-gap",
    must="New data and the FIN begin where what was sent before ends.",
    source="RFC 9293, 3.4",
    level="MUST",
    needs=("order",),
    any_clock=True,
    quote="A fundamental notion in the design is that every octet of data sent over a TCP connection has a sequence "
    "number.",
)


def check(trace: Trace) -> Found:
    takes = trace.out & (trace.data | trace.has(FIN)) & ~trace.has(RST) & (trace.nxt > NEVER)
    return where(
        np.asarray(takes & trace.from_syn & (trace["seq"] > trace.nxt)),
        lambda row: f"sends {trace['seq'][row]}, and had sent up to {trace.nxt[row]}",
        lambda: trace.latest(trace.out),
    )
