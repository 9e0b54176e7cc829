# SPDX-License-Identifier: Apache-2.0
"""No SYN once the connection is established."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN, RST, SYN
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="syn-when-established",
    must="No SYN or SYN-ACK leaves once it is acknowledged.",
    source="RFC 9293, 3.10.7.3",
    level="MUST",
    needs=("order", "packets"),
    quote="If our SYN has been ACKed, change the connection state to ESTABLISHED",
    linux="A listener whose accept queue is full drops the last ACK of the handshake and sends its SYN-ACK again "
    "(tcp_v4_syn_recv_sock(), tcp_abort_on_overflow = 0).",
)


def check(trace: Trace) -> Found:
    opens = trace.out & trace.has(SYN) & (trace.una >= 0)
    if not opens.any():
        return NOTHING
    acked = trace.una[trace.instant] >= 0
    over = trace.latest(trace.has(RST) | trace.has(FIN)) >= 0
    return where(
        np.asarray(opens & acked & ~over),
        lambda row: "sends a SYN that had been acknowledged",
        lambda: trace.latest(~trace.out),
    )
