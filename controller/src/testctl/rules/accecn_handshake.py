# SPDX-License-Identifier: Apache-2.0
"""A handshake of Accurate ECN says how its packets arrived."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, CWR, ECE, SYN
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="accecn-handshake",
    must="With Accurate ECN the flags of the SYN-ACK, and of the ACK behind it, are those of the ECN field with which "
    "the SYN, or the SYN-ACK, arrived.",
    source="RFC 9768, 3.1.5",
    level="MUST",
    needs=("order", "packets"),
    quote="MUST feed back the IP-ECN field on the latest valid SYN or acceptable SYN/ACK to arrive",
)
_FLAGS = np.array([0b010, 0b011, 0b100, 0b110])
"""AE, CWR and ECE for Not-ECT, ECT(1), ECT(0) and CE: tables 2 and 3."""


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    if not ecn.accurate.any():
        return Found()
    syn, ack = trace.has(SYN), trace.has(ACK)
    arrived = trace.latest(~trace.out & syn)
    earlier = trace.latest(~syn)
    answers = trace.out & ack & (syn | trace.pure_ack) & (arrived >= 0) & (earlier < 0)
    # With several SYNs or SYN-ACKs it may be an answer to any of them.
    single = (arrived >= 0) & (trace.latest(~trace.out & syn)[arrived] < 0)
    flags = 4 * (trace["ae"] != 0) + 2 * trace.has(CWR) + trace.has(ECE)
    wanted = _FLAGS[trace["ecn"][arrived]]
    return where(
        np.asarray(answers & ecn.accurate & single & (flags != wanted)),
        lambda row: (
            f"answers a SYN that had the ECN field {trace['ecn'][arrived[row]]} with AE, CWR, ECE {flags[row]:03b}: "
            f"want {wanted[row]:03b}"
        ),
        arrived,
    )
