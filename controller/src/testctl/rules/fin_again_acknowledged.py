# SPDX-License-Identifier: Apache-2.0
"""A FIN that comes again is acknowledged again."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="fin-again-acknowledged",
    must="A FIN that comes again is acknowledged, in TIME-WAIT too.",
    source="RFC 9293, 3.10.7.4",
    level="MUST",
    needs=("order", "packets"),
    only_if=("fin",),
    quote="The only thing that can arrive in this state is a retransmission of the remote FIN. Acknowledge it, and "
    "restart the 2 MSL timeout.",
    linux="Packets that are not acceptable are answered once in tcp_invalid_ratelimit, 500 ms "
    "(tcp_oow_rate_limited()).",
)
_LIMIT_NS = 500_000_000


def check(trace: Trace) -> Found:
    again = ~trace.out & trace.has(FIN) & trace.from_syn & (trace.rcv_nxt > NEVER) & (trace.end <= trace.rcv_nxt)
    if not again.any():
        return NOTHING
    answer = trace.following(trace.acks)
    limit = int(trace.settings.get("net.ipv4.tcp_invalid_ratelimit", 500)) * 1_000_000
    last = trace.latest(trace.acks)
    limited = (last >= 0) & (trace["time_ns"] - trace["time_ns"][last] <= limit)
    return where(
        trace.late(np.asarray(again & ~limited), answer, _LIMIT_NS),
        lambda row: f"received the FIN {trace.end[row] - 1} again, and did not acknowledge it",
        last,
    )
