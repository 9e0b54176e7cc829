# SPDX-License-Identifier: Apache-2.0
"""A FIN is acknowledged."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="fin-acknowledged",
    must="A FIN is acknowledged once all before it is there, within the time of a delayed ACK.",
    source="RFC 9293, 3.10.7.4",
    level="MUST",
    needs=("order", "packets", "reads"),
    only_if=("fin",),
    quote="advance RCV.NXT over the FIN, and send an acknowledgment for the FIN",
)
_LIMIT_NS = 500_000_000


def check(trace: Trace) -> Found:
    fin = ~trace.out & trace.has(FIN)
    came = ~trace.out & trace.from_syn & (trace.arrived_to > trace.rcv_nxt)
    end = np.maximum(trace.highest(trace.end, fin, came), np.where(fin, trace.end, NEVER))
    there = came & (end > NEVER) & (trace.arrived_to == end)
    answer = trace.reached(trace["ack"], trace.acks, end, there)
    return where(
        trace.late(np.asarray(there), answer, _LIMIT_NS),
        lambda row: f"received all up to the FIN {end[row] - 1}, and did not acknowledge it",
        answer,
    )
