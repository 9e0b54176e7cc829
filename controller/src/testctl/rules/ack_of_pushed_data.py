# SPDX-License-Identifier: Apache-2.0
"""What ends an application's write is acknowledged once it is read."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import PSH
from testctl.rules.core.rows import NEVER
from testctl.rules.core.sender import kernel
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-of-pushed-data",
    must="Data with PSH is acknowledged when the application has read all there is, where no data answers it.",
    source="Linux, __tcp_cleanup_rbuf()",
    level="Linux",
    needs=("order", "packets", "reads"),
    quote="If this read emptied read buffer, we send ACK, if connection is not bidirectional, user drained receive "
    "buffer and there was a small segment in queue.",
    linux="Judged are receivers with lowat=1B, which read what is there, since 6.6 (4720852ed9af): before it full "
    "segments did not count.",
)


def check(trace: Trace) -> Found:
    came = trace.taken & trace.data & trace.from_syn & (trace.rcv_nxt > NEVER)
    if not came.any() or trace.option("lowat", "auto") != 1 or kernel(trace) < (6, 6):
        return NOTHING
    there, segment = trace.arrived_to, -(-trace["length"] // np.maximum(trace["segs"], 1))
    in_order = came & (there > trace.rcv_nxt) & (trace["seq"] <= trace.rcv_nxt) & (trace.seen <= there)
    before = trace.latest(in_order)
    # A second segment of the same size below the MSS is what the receiver takes for a full one from then on.
    repeats = (before >= 0) & (segment[before] == segment) & (segment < trace.highest(segment, came))
    answers = trace.highest(trace.end, trace.out & trace.data) > NEVER
    pushed = in_order & trace.has(PSH) & ~repeats & ~answers & ~trace.refused
    answer = trace.reached(trace["ack"], trace.acks, there, pushed)
    return where(
        trace.late(pushed, answer, trace.at_once_ns),
        lambda row: f"received up to {there[row]} with PSH, all that was sent, and sent no ACK at once",
        answer,
    )
