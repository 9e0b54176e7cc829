# SPDX-License-Identifier: Apache-2.0
"""A DCTCP receiver acknowledges data with CE and data without it apart."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, ECE, RST, SYN
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="dctcp-marks-apart",
    must="The ACK that covers data has ECE exactly if the data has CE: no ACK covers data of both kinds.",
    source="RFC 8257, 3.2",
    level="MUST",
    needs=("order", "packets"),
    only_if=("classic_ecn",),
    quote="If the CE codepoint is not set and DCTCP.CE is true, set DCTCP.CE to false and send an immediate ACK.",
    linux="Before 4.18 the ACK at a change took the place of one that was delayed "
    "(27cde44a259c, tcp: do not cancel delay-AcK on DCTCP special ACK).",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    if not trace.dctcp:
        return Found()
    acks = trace.out & trace.has(ACK) & ((trace["flags"] & (RST | SYN)) == 0)
    there = trace.arrived_to
    # In order alone: what fills a gap is acknowledged with data that had arrived before it.
    inside = (trace.rcv_nxt > NEVER) & (there > trace.rcv_nxt) & (there == trace.end)
    data = ecn.classic & trace.taken & trace.data & inside & ~trace.refused & (trace["ecn"] > 0) & ~ecn.ended
    answer = trace.reached(trace["ack"], acks, there)
    mixed = trace.has(ECE)[answer] != ecn.marked
    return where(
        np.asarray(data & (answer >= 0) & mixed & (trace.reading_ns == 0)),
        lambda row: (
            f"received {trace['seq'][row]} {'with' if ecn.marked[row] else 'without'} CE, and acknowledged it "
            f"{'without' if ecn.marked[row] else 'with'} ECE, up to {trace['ack'][answer[row]]}"
        ),
        answer,
    )
