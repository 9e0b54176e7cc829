# SPDX-License-Identifier: Apache-2.0
"""A FIN is acknowledged."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, FIN, RST
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="fin-acknowledged",
    must="A FIN is acknowledged once all before it is there, within the time of a delayed ACK.",
    source="RFC 9293, 3.10.7.4",
    level="MUST",
    needs=("order", "packets", "reads"),
    quote="advance RCV.NXT over the FIN, and send an acknowledgment for the FIN",
)
_LIMIT_NS = 500_000_000


def check(trace: Trace, other: Trace | None) -> Found:
    acks = trace.out & trace.has(ACK) & ~trace.has(RST)
    fin = ~trace.out & trace.has(FIN)
    end = np.maximum(trace.highest(trace.end, fin), np.where(fin, trace.end, NEVER))
    there = ~trace.out & trace.from_syn & (end > NEVER) & (trace.arrived_to == end) & (trace.rcv_nxt < end)
    answer = trace.reached(trace["ack"], acks, end)
    return where(
        trace.late(np.asarray(there), answer, _LIMIT_NS),
        lambda row: f"received all up to the FIN {end[row] - 1}, and did not acknowledge it",
        answer,
    )
