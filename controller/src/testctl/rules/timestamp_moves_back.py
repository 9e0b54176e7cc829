# SPDX-License-Identifier: Apache-2.0
"""Timestamps never go back."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import RST
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="timestamp-moves-back",
    must="The timestamps of a host's packets never decrease.",
    source="RFC 7323, 5.2",
    level="MUST",
    any_clock=True,
    quote="the timestamp value sent in a segment is monotonically non-decreasing",
)


def check(trace: Trace) -> Found:
    sent = trace.out & (trace["tsval"] >= 0) & ~trace.has(RST)
    highest = trace.highest(trace.stamp, sent)
    return where(
        np.asarray(sent & (trace.stamp < highest)),
        lambda row: f"sends the timestamp {trace['tsval'][row]} after {highest[row] % 2**32}",
        lambda: trace.latest(sent),
    )
