# SPDX-License-Identifier: Apache-2.0
"""The timestamps option in every segment."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import RST
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.timestamps import stamps_of
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="timestamp-always",
    must="Where the handshake agreed on timestamps, every packet but a RST has them.",
    source="RFC 7323, 3.2",
    level="MUST",
    any_clock=True,
    quote="Once TSopt has been successfully negotiated [...] the TSopt MUST be sent in every non-<RST> segment for the "
    "duration of the connection",
)


def check(trace: Trace) -> Found:
    agreed = stamps_of(trace).agreed
    return where(
        np.asarray(trace.out & agreed & ~trace.has(RST) & (trace["tsval"] < 0)),
        lambda row: f"sends {trace['seq'][row]} without timestamps",
    )
