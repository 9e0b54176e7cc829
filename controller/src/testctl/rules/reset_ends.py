# SPDX-License-Identifier: Apache-2.0
"""A RST ends the connection."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import RST, SYN
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="reset-ends",
    must="Nothing but RSTs leaves after a RST was sent, or arrived with the number that was expected.",
    source="RFC 9293, 3.10.7.4",
    level="MUST",
    needs=("order", "packets"),
    only_if=("reset",),
    quote="Users should also receive an unsolicited general 'connection reset' signal. Enter the CLOSED state, delete "
    "the TCB, and return.",
)


def check(trace: Trace) -> Found:
    rst = trace.has(RST)
    ends = rst & (trace.out | (trace["seq"] == trace.rcv_nxt) & (trace.una >= 0))
    last = trace.latest(ends)
    opened = trace.latest(trace.has(SYN)) > last
    settled = (last >= 0) & (last < trace.instant)
    return where(
        np.asarray(trace.out & ~rst & ~trace.has(SYN) & settled & ~opened & (trace.reading_ns == 0)),
        lambda row: f"sends {trace['seq'][row]} after a RST",
        last,
    )
