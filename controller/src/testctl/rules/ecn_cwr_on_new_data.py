# SPDX-License-Identifier: Apache-2.0
"""CWR on new data alone."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import CWR, RST, SYN
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-cwr-on-new-data",
    must="No retransmission and no packet without data has CWR.",
    source="RFC 3168, 6.1.2",
    level="SHOULD",
    only_if=("classic_ecn",),
    any_clock=True,
    quote="the CWR bit in the TCP header SHOULD NOT be set on retransmitted packets",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    cwr = trace.out & trace.has(CWR) & ((trace["flags"] & (SYN | RST)) == 0)
    old = ~trace.data | (trace.end <= trace.nxt)
    return where(
        np.asarray(cwr & ecn.classic & old),
        lambda row: f"sends {trace['seq'][row]} with CWR, which is no new data",
    )
