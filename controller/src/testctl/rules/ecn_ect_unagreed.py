# SPDX-License-Identifier: Apache-2.0
"""No ECT without an agreement on ECN."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import SYN
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-ect-unagreed",
    must="Data has no ECT where the handshake did not agree on ECN.",
    source="RFC 3168, 6.1.1",
    level="MUST",
    any_clock=True,
    quote="A host MUST NOT set ECT on data packets unless it has sent at least one ECN-setup SYN or ECN-setup SYN-ACK "
    "packet, and has received at least one ECN-setup SYN or ECN-setup SYN-ACK packet",
    linux="Congestion control with TCP_CONG_NEEDS_ECN (dctcp) has ECT on all that it sends, agreed or not "
    "(tcp_init_congestion_control(), INET_ECN_xmit()).",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    if trace.dctcp:
        return Found()
    return where(
        np.asarray(trace.out & ecn.off & ~trace.has(SYN) & (trace["ecn"] > 0)),
        lambda row: f"sends {trace['seq'][row]} with the ECN field {trace['ecn'][row]}; no ECN was agreed",
    )
