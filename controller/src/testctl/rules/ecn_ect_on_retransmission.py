# SPDX-License-Identifier: Apache-2.0
"""No ECT on retransmissions and window probes."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-ect-on-retransmission",
    must="Data that was sent before is not ECN-capable when it is sent again.",
    source="RFC 3168, 6.1.5",
    level="MUST",
    only_if=("classic_ecn",),
    any_clock=True,
    quote="ECN-capable TCP implementations MUST NOT set either ECT codepoint (ECT(0) or ECT(1)) in the IP header for "
    "retransmitted data packets",
    linux="Congestion control with TCP_CONG_NEEDS_ECN (dctcp) has ECT on every packet (tcp_ecn_send()).",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    again = trace.out & trace.data & (trace.end <= trace.nxt)
    return where(
        np.asarray(again & ecn.classic & ~ecn.every_packet & (trace["ecn"] > 0)),
        lambda row: f"sends {trace['seq'][row]} again with the ECN field {trace['ecn'][row]}",
    )
