# SPDX-License-Identifier: Apache-2.0
"""The ACE field counts what arrived with CE."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, CE, CWR, ECE, SYN
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="accecn-ace",
    must="With Accurate ECN the ACE field is 5 and the number of packets that arrived with CE, of which it has 3 bits.",
    source="RFC 9768, 3.2.2",
    level="MUST",
    needs=("order", "packets"),
    quote="a Data Receiver MUST encode the three least significant bits of its r.cep counter into the ACE field",
    linux="A SYN-ACK with CE counts: tcp_ecn_rcv_synack().",
)
_INITIAL, _VALUES = 5, 8


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    if not ecn.accurate.any():
        return Found()
    arrived = ~trace.out & ~trace.has(SYN)
    counted = arrived | ~trace.out & trace.has(ACK)  # a SYN-ACK too
    marked = counted & (trace["ecn"] == CE)
    count = trace.count(trace["segs"], marked)
    field = 4 * (trace["ae"] != 0) + 2 * trace.has(CWR) + trace.has(ECE)
    # What arrives at the same instant may not have been processed; the last packet of the handshake says something
    # else (3.2.2.1).
    least = trace.count(trace["segs"], marked & ecn.acceptable)[trace.instant]
    beyond = (field - _INITIAL - least) % _VALUES
    handshake = trace.latest(arrived) < 0
    return where(
        np.asarray(ecn.answers & ecn.accurate & ~ecn.ended & ~handshake & (beyond > count - least)),
        lambda row: (
            f"sends an ACK of {trace['ack'][row]} with ACE {field[row]}, after {count[row]} packets with CE: want "
            f"{(_INITIAL + count[row]) % _VALUES}"
        ),
        lambda: trace.latest(marked),
    )
