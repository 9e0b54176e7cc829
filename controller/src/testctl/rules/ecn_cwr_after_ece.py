# SPDX-License-Identifier: Apache-2.0
"""CWR on the first new data after the reaction to ECE."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import CWR, ECE, RST, SYN
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-cwr-after-ece",
    must="The first new data behind an ACK with ECE has CWR, once in a round trip.",
    source="RFC 3168, 6.1.2",
    level="MUST",
    needs=("order",),
    only_if=("classic_ecn",),
    quote="the TCP sender sets the CWR flag in the TCP header of the first new data packet sent after the window "
    "reduction",
)


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    echo = ~trace.out & trace.has(ECE) & ((trace["flags"] & (SYN | RST)) == 0) & ecn.classic
    if not echo.any():
        return NOTHING
    new = trace.out & trace.data & (trace.nxt > NEVER) & (trace["seq"] >= trace.nxt)
    cwr = trace.out & trace.has(CWR) & ~trace.has(SYN)
    again = trace.out & trace.data & (trace.end <= trace.nxt)
    # A window that was reduced before, by ECE or for a loss, is not reduced once more until it is acknowledged.
    reacted = np.maximum(trace.highest(trace.end, cwr), trace.highest(trace.nxt, again))
    lost = (trace["sack1_start"] >= 0) | (trace["ack"] <= trace.una)
    fresh = echo & ~lost & (trace["ack"] > reacted) & (trace["ack"] <= trace.nxt)
    since = trace.latest(fresh)
    # Data at the same instant may have been on its way down when the ACK came.
    due = new & (since >= 0) & (since < trace.instant) & ~trace.has(CWR)
    done = np.maximum(trace.latest(cwr), trace.latest(again))
    earlier = trace.latest(due)
    broken = due & (done < since) & (earlier < since)
    return where(
        np.asarray(broken),
        lambda row: (
            f"sends {trace['seq'][row]} without CWR, the first new data since the ACK of {trace['ack'][since[row]]} "
            "with ECE"
        ),
        since,
    )
