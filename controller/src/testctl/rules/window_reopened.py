# SPDX-License-Identifier: Apache-2.0
"""A window that opens again is reported, not left for a probe to find."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, RST, SYN
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="window-reopened",
    must="The ACK that opens a zero window is sent when it opens, not as the answer to a probe.",
    source="RFC 9293, 3.8.6.1",
    level="SHOULD",
    needs=("order",),
    only_if=("zero_window",),
    quote="This is essential to guarantee that when either TCP peer has a zero window the reopening of the window will "
    "be reliably reported to the other.",
)


def check(trace: Trace) -> Found:
    acks = trace.out & trace.has(ACK) & ~trace.has(RST) & ~trace.has(SYN)
    if not (acks & (trace["window"] == 0)).any():
        return NOTHING
    last = trace.latest(acks)
    opens = acks & (last >= 0) & (trace["window"] > 0) & (trace["window"][last] == 0)
    arrival = trace.latest(~trace.out)
    # An ACK of the same number, just behind a probe: nothing but the probe was its cause.
    answers = (arrival > last) & (trace["ack"] == trace["ack"][last])
    soon = trace["time_ns"] - trace["time_ns"][np.maximum(arrival, 0)] <= trace.at_once_ns
    return where(
        opens & answers & soon,
        lambda row: f"opens its window to {trace['window'][row]} bytes only when a probe came",
        arrival,
    )
