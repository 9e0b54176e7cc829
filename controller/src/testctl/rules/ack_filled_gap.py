# SPDX-License-Identifier: Apache-2.0
"""An ACK at once for data that fills a gap or the beginning of it."""

from __future__ import annotations

from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-filled-gap",
    must="Data that fills a gap from its beginning, all of it or a part, is acknowledged at once.",
    source="RFC 5681, 4.2",
    level="SHOULD",
    needs=("order", "packets"),
    only_if=("gap",),
    quote="a TCP receiver SHOULD send an immediate ACK when the incoming segment fills in all or part of a gap in the "
    "sequence space",
)


def check(trace: Trace) -> Found:
    there = trace.arrived_to
    gap = (trace.rcv_nxt > NEVER) & (trace.seen > trace.rcv_nxt)
    fills = ~trace.refused & trace.taken & trace.data & trace.from_syn & gap & (there > trace.rcv_nxt)
    answer = trace.reached(trace["ack"], trace.acks, there, fills)
    return where(
        trace.late(fills, answer, trace.at_once_ns),
        lambda row: (
            f"received {trace['seq'][row]}, which filled the gap at {trace.rcv_nxt[row]}, and sent no ACK at "
            f"once of {there[row]}"
        ),
        answer,
    )
