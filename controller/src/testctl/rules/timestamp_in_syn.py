# SPDX-License-Identifier: Apache-2.0
"""A SYN echoes no timestamp."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="timestamp-in-syn",
    must="A packet without ACK number, such as a SYN, has the timestamp echo 0.",
    source="RFC 7323, 3.2",
    level="SHOULD",
    quote="If the ACK bit is not set in the outgoing TCP header, the sender of that segment SHOULD set the TSecr field "
    "to zero.",
)


def check(trace: Trace) -> Found:
    bare = trace.out & ~trace.has(ACK)
    if not bare.any():
        return NOTHING
    return where(
        np.asarray(bare & (trace["tsval"] >= 0) & (trace["tsecr"] != 0)),
        lambda row: f"echoes the timestamp {trace['tsecr'][row]} in a packet without ACK number",
    )
