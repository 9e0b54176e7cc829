# SPDX-License-Identifier: Apache-2.0
"""ECE of a DCTCP receiver is the CE mark of the last packet."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ECE
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="dctcp-echo",
    must="ACKs have ECE exactly if the last data that arrived has CE; the ACK of what came before a change may have "
    "its mark.",
    source="RFC 8257, 3.2",
    level="MUST",
    needs=("order", "packets"),
    only_if=("classic_ecn",),
    quote="When sending an ACK, the ECE flag MUST be set if and only if DCTCP.CE is true.",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    if not trace.dctcp:
        return Found()
    # Data that arrived before, and not ECN-capable data, change nothing (__tcp_ecn_check_ce()).
    data = trace.taken & trace.data & ~trace.repeated & ~trace.refused & (trace["ecn"] > 0)
    last = trace.latest(data)
    mark, echo = ecn.marked & data, trace.has(ECE)
    # An ACK has the mark of the packet whose data it ends with: those at one instant are processed one by one, and one
    # from before is acknowledged at a change.  An ACK number that is older, or below a gap,
    # may go with any of them.
    oldest = np.where(last >= trace.instant, last[trace.instant], last)
    begins = oldest < 0
    oldest = np.where(begins, trace.first, oldest)
    ended = trace.reached(trace.arrived_to, data, trace["ack"])
    any_like = np.where(echo, trace.latest(mark), trace.latest(data & ~mark)) >= oldest
    any_like |= begins & ~echo
    above_gap = (ended < last) & (trace.rcv_nxt <= trace["ack"])
    like = np.where((ended >= oldest) & ~above_gap, mark[ended] == echo, any_like)
    known = ecn.answers & ecn.classic & ~ecn.ended & (last >= 0) & (trace.rcv_nxt > NEVER) & (trace.reading_ns == 0)
    return where(
        np.asarray(known & ~like),
        lambda row: (
            f"sends an ACK of {trace['ack'][row]} {'with' if echo[row] else 'without'} ECE, and the last data, "
            f"{trace['seq'][last[row]]}, came {'with' if mark[last[row]] else 'without'} CE"
        ),
        last,
    )
