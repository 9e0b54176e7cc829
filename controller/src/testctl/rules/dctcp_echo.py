# SPDX-License-Identifier: Apache-2.0
"""ECE of a DCTCP receiver is the CE mark of the last packet."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ECE
from testctl.rules.core.ecn import Ecn
from testctl.rules.core.spec import Found, RuleSpec, undecided, where
from testctl.rules.core.trace import NEVER, Trace

SPEC = RuleSpec(
    name="dctcp-echo",
    must="ACKs have ECE exactly if the last data that arrived has CE; the ACK of what came before a change may have "
    "its mark.",
    source="RFC 8257, 3.2",
    level="MUST",
    quote="When sending an ACK, the ECE flag MUST be set if and only if DCTCP.CE is true.",
)


def check(trace: Trace, other: Trace | None) -> Found:
    ecn = Ecn(trace)
    if not ecn.dctcp:
        return Found()
    if why := trace.delayed or trace.corrupting:
        return undecided(why)
    # Data that arrived before, and not ECN-capable data, change nothing (__tcp_ecn_check_ce()).
    data = ~trace.out & trace.data & ~trace.repeated & ~trace.refused & (trace["ecn"] > 0)
    last = trace.latest(data)
    former = np.where(last >= 0, last[last], -1)
    state = (last >= 0) & ecn.marked[last]
    was = (former >= 0) & ecn.marked[former]
    echo = trace.has(ECE)
    older = (last >= 0) & (trace["ack"] <= trace.rcv_nxt[last]) & (last >= trace.instant) & (echo == was)
    known = ecn.answers & ecn.classic & ~ecn.ended & (last >= 0) & (trace.rcv_nxt > NEVER) & (trace.reading_ns == 0)
    return where(
        np.asarray(known & (echo != state) & ~older),
        lambda row: (
            f"sends an ACK of {trace['ack'][row]} {'with' if echo[row] else 'without'} ECE, and the last data, "
            f"{trace['seq'][last[row]]}, came {'with' if state[row] else 'without'} CE"
        ),
        last,
    )
