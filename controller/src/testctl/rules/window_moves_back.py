# SPDX-License-Identifier: Apache-2.0
"""A window that was offered stays offered."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="window-moves-back",
    must="The right edge of the window that a host offers never moves to the left.",
    source="RFC 9293, 3.8.6",
    level="SHOULD",
    quote="A TCP receiver SHOULD NOT shrink the window, i.e., move the right window edge to the left (SHLD-14).",
    linux="The ACK that a DCTCP receiver sends at a change of the CE mark, for what came before, has the window of the "
    "number behind what came since (__tcp_send_ack(), since 4.18). Since 6.6 a receiver without memory for data within "
    "its window drops it, reports a zero window and then offers what it has (e2142825c120, ICSK_ACK_NOMEM), and "
    "tcp_shrink_window allows the edge to move back.",
)


def check(trace: Trace) -> Found:
    edge = trace.limit
    if not (trace.acks & ~trace.has(SYN) & (edge < trace.offered)).any():
        return NOTHING
    back = trace.acks & ~trace.has(SYN) & (trace.offered > NEVER) & (edge <= trace.offered - trace.unit)
    if trace.dctcp:
        back &= ~(trace["ack"] < trace.rcv_nxt)
    if int(trace.settings.get("net.ipv4.tcp_shrink_window", 0)):
        back[:] = False
    # What comes while nothing waits is taken all the same (tcp_data_queue()).
    smaller = trace.option("receive_buffer_later", "none") not in ("none", None)
    full = trace.acks & (trace["window"] == 0) & ((trace["ack"] < trace.rcv_nxt) | np.bool_(smaller))
    highest = trace.reached(edge, trace.acks, trace.offered)
    return where(
        back & ~full & (highest >= trace.latest(full)),
        lambda row: f"offers up to {edge[row]} after {trace.offered[row]}",
        highest,
    )
