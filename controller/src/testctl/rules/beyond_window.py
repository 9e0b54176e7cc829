# SPDX-License-Identifier: Apache-2.0
"""Nothing is sent beyond the window that the peer offered."""

from __future__ import annotations

from testctl.records.schema import ACK, RST, SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="beyond-window",
    must="Data ends at or below the right edge of the window that the peer offered; one byte more is a window probe.",
    source="RFC 9293, 3.8.6",
    level="MUST",
    any_clock=True,
    quote="The sending TCP peer packages the data to be transmitted into segments that fit the current window",
)


def check(trace: Trace, other: Trace | None) -> Found:
    data = trace.out & trace.data & ~trace.has(SYN) & ~trace.has(RST) & trace.has(ACK) & (trace.edge > NEVER)
    probe = trace["length"] == 1
    broken = data & (trace["seq"] + trace["length"] > trace.edge) & ~probe
    return where(
        broken,
        lambda row: f"sends up to {trace['seq'][row] + trace['length'][row]}; the window ended at {trace.edge[row]}",
        trace.latest(~trace.out & trace.has(ACK)),
    )
