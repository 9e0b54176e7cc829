# SPDX-License-Identifier: Apache-2.0
"""No ECT on pure ACKs."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-ect-on-ack",
    must="ACKs without data are not ECN-capable.",
    source="RFC 3168, 6.1.4",
    level="MUST",
    only_if=("classic_ecn",),
    any_clock=True,
    quote="pure acknowledgement packets (e.g., packets that do not contain any accompanying data) MUST be sent with "
    "the not-ECT codepoint",
    linux="Congestion control with TCP_CONG_NEEDS_ECN (dctcp) has ECT on every packet (tcp_ecn_send()).",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    return where(
        np.asarray(trace.out & ecn.classic & ~ecn.every_packet & trace.pure_ack & (trace["ecn"] > 0)),
        lambda row: f"sends an ACK of {trace['ack'][row]} with the ECN field {trace['ecn'][row]}",
    )
