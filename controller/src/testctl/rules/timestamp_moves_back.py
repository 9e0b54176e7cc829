# SPDX-License-Identifier: Apache-2.0
"""Timestamps never go back."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import RST
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="timestamp-moves-back",
    must="The timestamps of a host's packets never decrease.",
    source="RFC 7323, 5.2",
    level="MUST",
    any_clock=True,
    quote="the timestamp value sent in a segment is monotonically non-decreasing",
)
_HALF = 1 << 31
"""Numbers of 32 bits wrap: a timestamp that much lower is higher."""


def check(trace: Trace, other: Trace | None) -> Found:
    sent = trace.out & (trace["tsval"] >= 0) & ~trace.has(RST)
    highest = trace.highest(trace["tsval"], sent)
    lower = sent & (trace["tsval"] < highest)
    if not lower.any():
        return NOTHING
    return where(
        np.asarray(lower & (highest > NEVER) & (highest - trace["tsval"] < _HALF)),
        lambda row: f"sends the timestamp {trace['tsval'][row]} after {highest[row]}",
        lambda: trace.latest(sent),
    )
