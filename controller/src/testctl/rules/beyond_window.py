# SPDX-License-Identifier: Apache-2.0
"""Nothing is sent beyond the window that the peer offered."""

from __future__ import annotations

from testctl.records.schema import ACK, SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="beyond-window",
    must="Data ends at or below the right edge of the window that the peer offered; one byte more is a window probe.",
    source="RFC 9293, 3.8.6",
    level="MUST",
    any_clock=True,
    quote="The sending TCP peer packages the data to be transmitted into segments that fit the current window",
)


def check(trace: Trace) -> Found:
    beyond = trace.acks & trace.data & ~trace.has(SYN) & (trace.end > trace.edge) & (trace.edge > NEVER)
    if not beyond.any():
        return NOTHING
    probe = trace["length"] == 1
    return where(
        beyond & (trace["seq"] + trace["length"] > trace.edge) & ~probe,
        lambda row: f"sends up to {trace['seq'][row] + trace['length'][row]}; the window ended at {trace.edge[row]}",
        lambda: trace.latest(~trace.out & trace.has(ACK)),
    )
