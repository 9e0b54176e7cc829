# SPDX-License-Identifier: Apache-2.0
"""A RST has a number that the peer takes."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, RST
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="reset-number",
    must="A RST has the number SND.NXT, or the ACK number of the packet that it answers.",
    source="RFC 9293, 3.5.2",
    level="MUST",
    needs=("order",),
    only_if=("reset",),
    quote="If the incoming segment has an ACK field, the reset takes its sequence number from the ACK field of the "
    "segment",
    linux="Where the peer took back its window from below SND.NXT it is the window's edge (tcp_acceptable_seq()).",
)


def check(trace: Trace) -> Found:
    seq, rst = trace["seq"], trace.out & trace.has(RST) & trace.from_syn & (trace.nxt > NEVER)
    if not rst.any():
        return NOTHING
    acks = ~trace.out & trace.has(ACK)
    last = trace.latest(acks)
    answers = (last >= 0) & (seq == trace["ack"][last])
    edge = (last >= 0) & (seq == trace["ack"][last] + trace["window"][last])
    wrong = np.asarray(rst & (seq != trace.nxt) & ~answers & ~edge)
    for row in np.flatnonzero(wrong):  # of several ACKs of an instant each has its answer
        instant = slice(trace.instant[row], row)
        wrong[row] = not (acks[instant] & (trace["ack"][instant] == seq[row])).any()
    return where(
        wrong,
        lambda row: f"sends a RST at {seq[row]}, and had sent up to {trace.nxt[row]}",
        last,
    )
