# SPDX-License-Identifier: Apache-2.0
"""All but the first segment acknowledge."""

from __future__ import annotations

from testctl.records.schema import ACK, RST, SYN
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-flag",
    must="Every segment but the first SYN and a reset has the ACK flag.",
    source="RFC 9293, 3.1",
    level="MUST",
    any_clock=True,
    quote="Once a connection is established, this is always sent.",
)


def check(trace: Trace) -> Found:
    syn = trace.has(SYN)
    broken = trace.out & ~trace.has(ACK) & ~trace.has(RST) & ~syn
    return where(broken, lambda row: f"sends {trace['seq'][row]} without an ACK")
