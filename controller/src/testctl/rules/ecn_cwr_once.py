# SPDX-License-Identifier: Apache-2.0
"""CWR once for a reduction of the window."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import CWR, ECE, SYN
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-cwr-once",
    must="CWR is set once for a reduction: an ACK with ECE, a retransmission, or a whole window came since the last.",
    source="RFC 3168, 6.1.2",
    level="SHOULD",
    needs=("order",),
    only_if=("classic_ecn",),
    quote="it SHOULD set the CWR bit only on the first new data packet that it transmits",
)


def check(trace: Trace) -> Found:
    """A window is reduced "for any reason", and once for a window of data: CDG does so for a delay, which no packet
    shows, and Linux for a full queue of the host's own.  So one without a reason to be seen is no fault alone."""
    ecn = ecn_of(trace)
    cwr = trace.out & trace.has(CWR) & ~trace.has(SYN)
    if not cwr.any():
        return NOTHING
    again = trace.out & trace.data & (trace.end <= trace.nxt)
    echo = ~trace.out & trace.has(ECE) & ~trace.has(SYN)
    before = trace.latest(cwr)
    reason = np.maximum(trace.latest(echo), trace.latest(again))
    # A retransmission before the last CWR may be the reason of both, until all that was out then is acknowledged.
    recovering = (before >= 0) & (trace.highest(trace.nxt, again)[before] > trace.una[before])
    unclear = recovering | (trace.nxt <= NEVER)
    within = (before >= 0) & (trace.una < trace.end[before])
    return where(
        np.asarray(cwr & ecn.classic & (reason < before) & within & ~unclear),
        lambda row: f"sends {trace['seq'][row]} with CWR, and had no reason to reduce its window again",
        before,
    )
