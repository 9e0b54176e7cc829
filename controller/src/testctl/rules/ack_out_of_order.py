# SPDX-License-Identifier: Apache-2.0
"""A duplicate ACK at once for data above a gap."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.rows import NEVER
from testctl.rules.core.sacks import compression_ns
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ack-out-of-order",
    must="Data above a gap is answered by an ACK at once.",
    source="RFC 5681, 4.2",
    level="SHOULD",
    needs=("order", "packets"),
    only_if=("gap",),
    quote="A TCP receiver SHOULD send an immediate duplicate ACK when an out-of-order segment arrives",
    linux="Since 4.18 ACKs behind the third duplicate wait for up to tcp_comp_sack_delay_ns (1 ms) and "
    "tcp_comp_sack_slack_ns (0.1 ms), unless tcp_comp_sack_nr is 0 or SACK is off (__tcp_ack_snd_check()).",
)
_COMPRESSED_BEHIND = 3


def check(trace: Trace) -> Found:
    gap = (
        ~trace.refused
        & ~trace.out
        & trace.data
        & trace.from_syn
        & (trace.rcv_nxt > NEVER)
        & (trace["seq"] > trace.rcv_nxt)
    )
    answer = trace.following(trace.acks, gap)
    soon = trace.late(gap, answer, trace.at_once_ns)
    if not soon.any():
        return NOTHING
    compressed = trace.late(gap, answer, trace.at_once_ns + compression_ns(trace))
    # ACKs since the gap came to begin where it does: those with the ACK number that is the gap's begin.
    same = trace.acks & (trace["ack"] == trace.rcv_nxt) & (trace.seen > trace.rcv_nxt)
    number = trace.count(np.ones(len(trace), np.int64), same)
    began = trace.reached(trace["ack"], trace.acks, trace.rcv_nxt)
    duplicates = number - np.where(began >= 0, number[began], 0)
    broken = np.where(duplicates >= _COMPRESSED_BEHIND, compressed, soon)
    return where(
        broken,
        lambda row: f"received {trace['seq'][row]}, expecting {trace.rcv_nxt[row]}, and sent no ACK at once",
        answer,
    )
