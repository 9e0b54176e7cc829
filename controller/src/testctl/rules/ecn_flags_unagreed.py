# SPDX-License-Identifier: Apache-2.0
"""No flags of ECN without an agreement on it."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import CWR, ECE, RST, SYN
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-flags-unagreed",
    must="ECE, CWR and AE are zero behind a handshake that did not agree on ECN.",
    source="RFC 9293, 3.1",
    level="MUST",
    any_clock=True,
    quote="Must be zero in generated segments and must be ignored in received segments if the corresponding future "
    "features are not implemented by the sending or receiving host.",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    flags = trace.has(ECE) | trace.has(CWR) | (trace["ae"] != 0)
    return where(
        np.asarray(trace.out & ecn.off & ((trace["flags"] & (SYN | RST)) == 0) & flags),
        lambda row: f"sends {trace['seq'][row]} with ECE, CWR or AE; no ECN was agreed",
    )
