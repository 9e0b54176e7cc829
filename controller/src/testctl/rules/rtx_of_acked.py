# SPDX-License-Identifier: Apache-2.0
"""No retransmission of what was acknowledged."""

from __future__ import annotations

from testctl.rules.core.spec import SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="rtx-of-acked",
    must="What was acknowledged cumulatively is not sent again; one byte is a probe.",
    source="RFC 9293, 3.10.7.4",
    level="MUST",
    needs=SENDER,
    only_if=("retransmission",),
    quote="Any segments on the retransmission queue that are thereby entirely acknowledged are removed.",
)


def check(trace: Trace) -> Found:
    again = trace.board.again & (trace["length"] != 1) & trace.from_syn & (trace.end <= trace.una)
    return where(
        again & (trace.end <= trace.una[trace.instant]),
        lambda row: f"sends {trace['seq'][row]} to {trace.end[row]} again; {trace.una[row]} had been acknowledged",
        lambda: trace.latest(trace.board.acks & (trace["ack"] > trace.una)),
    )
