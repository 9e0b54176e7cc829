# SPDX-License-Identifier: Apache-2.0
"""New data is ECN-capable."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-ect-on-new-data",
    must="New data of a connection that uses ECN is ECN-capable.",
    source="RFC 3168, 6.1.2",
    level="SHOULD",
    any_clock=True,
    quote="For a TCP connection using ECN, new data packets are transmitted with an ECT codepoint set in the IP "
    "header.",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    if not (ecn.classic | ecn.accurate).any():
        return NOTHING
    fresh = trace.out & trace.data & (trace.nxt > NEVER) & (trace["seq"] >= trace.nxt)
    return where(
        np.asarray(fresh & (ecn.classic | ecn.accurate) & (trace["ecn"] == 0)),
        lambda row: f"sends {trace['seq'][row]} for the first time without ECT",
    )
