# SPDX-License-Identifier: Apache-2.0
"""A receiver does not open its window in small steps."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, RST, SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="silly-window-offered",
    must="A right edge that moves forward leaves at least the lesser of a segment and half of the buffer usable.",
    source="RFC 9293, 3.8.6.2.2",
    level="MUST",
    quote="A TCP implementation MUST include a SWS avoidance algorithm in the receiver (MUST-39).",
    linux="With window scaling the edge moves by less than a segment where the window is a segment or more in all "
    "(__tcp_select_window()): what is usable is not small, which is what is judged. A window that stays is "
    "rounded up (tcp_select_window()).",
)


def check(trace: Trace) -> Found:
    if not trace.peer_mss:
        return Found()
    if trace.option("receive_buffer_later", "none") not in ("none", None):
        return undecided(f"the receive buffer of {trace.flow} changes")
    acks = trace.out & trace.has(ACK) & ~trace.has(RST) & ~trace.has(SYN)
    edge = trace.limit
    usable = edge - np.maximum(trace["ack"], trace.rcv_nxt)
    moved = acks & (trace.offered > NEVER) & (edge >= trace.offered + trace.unit) & (usable < trace.peer_mss)
    if not moved.any():
        return NOTHING
    largest = trace.highest(trace["window"], acks)
    least = np.minimum(trace.peer_mss, largest // 2)
    moved &= largest > NEVER
    return where(
        moved & (usable < least),
        lambda row: f"opens its window from {trace.offered[row]} to {edge[row]}: {usable[row]} bytes to be sent",
        lambda: trace.latest(acks),
    )
