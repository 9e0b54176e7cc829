# SPDX-License-Identifier: Apache-2.0
"""No ECE without CE since the last CWR."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import CE, CWR, ECE
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-echo-without-ce",
    must="ACKs have ECE only if CE arrived, and no CWR since.",
    source="RFC 3168, 6.1.3",
    level="MUST",
    needs=("order", "packets"),
    only_if=("classic_ecn",),
    quote="After the receipt of the CWR packet, acknowledgments for subsequent non-CE data packets do not have the "
    "ECN-Echo flag set.",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    if trace.dctcp:
        return Found()
    if not (ecn.answers & ecn.classic & trace.has(ECE)).any():
        return NOTHING
    marked = ~trace.out & (trace["ecn"] == CE)
    since = trace.latest(marked)
    reset = trace.latest(trace.has(CWR) & trace.data & ~marked & ecn.acceptable)
    over = (since < 0) | (reset > since) & (reset < trace.instant)
    broken = ecn.answers & ecn.classic & over & trace.has(ECE) & (trace.reading_ns == 0)
    return where(
        np.asarray(broken),
        lambda row: (
            f"sends an ACK of {trace['ack'][row]} with ECE, and nothing had arrived with CE"
            + (" since the CWR" if since[row] >= 0 else "")
        ),
        reset,
    )
