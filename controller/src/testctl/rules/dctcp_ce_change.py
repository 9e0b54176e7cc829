# SPDX-License-Identifier: Apache-2.0
"""A DCTCP receiver answers a change of the CE mark at once."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import CE, SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="dctcp-ce-change",
    must="Where the CE mark of the data that arrives changes, an ACK of it leaves at once.",
    source="RFC 8257, 3.2",
    level="MUST",
    needs=("order", "packets"),
    quote="If the CE codepoint is set and DCTCP.CE is false, set DCTCP.CE to true and send an immediate ACK.",
    linux="Before 4.18 an ACK that was delayed is sent instead, and the new one waits "
    "(27cde44a259c, tcp: do not cancel delay-AcK on DCTCP special ACK).",
)


def check(trace: Trace) -> Found:
    if not trace.dctcp:
        return Found()
    data = trace.taken & trace.data & trace.from_syn & (trace["ecn"] > 0)
    there = trace.arrived_to
    before = trace.latest(data)
    marked = trace["ecn"] == CE
    changed = data & (before >= 0) & (marked != marked[before]) & (there > trace.rcv_nxt) & (trace.rcv_nxt > NEVER)
    answer = trace.reached(trace["ack"], trace.acks & ~trace.has(SYN), there)
    return where(
        np.asarray(trace.late(changed & ~trace.refused, answer, trace.at_once_ns)),
        lambda row: (
            f"received {trace['seq'][row]} {'with' if marked[row] else 'without'} CE, where the packet before "
            "was the other, and sent no ACK of it at once"
        ),
        answer,
    )
