# SPDX-License-Identifier: Apache-2.0
"""No data before the handshake ends."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import SYN
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="data-before-established",
    must="No data leaves before the host's SYN is acknowledged, except with TCP Fast Open.",
    source="RFC 9293, 3.10.2",
    level="MUST",
    any_clock=True,
    quote="Queue the data for transmission after entering ESTABLISHED state.",
)


def check(trace: Trace) -> Found:
    fast_open = trace.anywhere(trace.has(SYN) & trace.data)
    return where(
        np.asarray(trace.out & trace.data & trace.from_syn & ~fast_open & (trace.una < 0)),
        lambda row: f"sends {trace['seq'][row]} before its SYN was acknowledged",
    )
