# SPDX-License-Identifier: Apache-2.0
"""An ACK without data has the number of the next byte."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-sequence",
    must="The sequence number of an ACK without data is SND.NXT; of a probe it is the one before SND.UNA.",
    source="RFC 9293, 3.10.7.4",
    level="MUST",
    needs=("order",),
    quote="<SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>",
    linux="Where the peer took back its window from below SND.NXT it is the window's edge (tcp_acceptable_seq()).",
)


def check(trace: Trace) -> Found:
    seq = trace["seq"]
    apart = trace.out & trace.pure_ack & trace.from_syn & (trace.nxt > NEVER) & (seq != trace.nxt)
    if not apart.any():
        return NOTHING
    last = trace.latest(~trace.out)
    edge = np.where(last >= 0, trace["ack"][last] + trace["window"][last], NEVER)
    usual = (seq == trace.una - 1) | (seq == trace.una[trace.instant] - 1)
    return where(
        np.asarray(apart & ~usual & (seq != edge)),
        lambda row: f"sends an ACK at {seq[row]}, and had sent up to {trace.nxt[row]}",
        lambda: trace.latest(trace.out),
    )
