# SPDX-License-Identifier: Apache-2.0
"""PAWS: data older than TS.Recent is not taken."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, RST, SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.timestamps import stamps_of
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="timestamp-old",
    must="Data with a timestamp below TS.Recent is dropped: no ACK takes it in.",
    source="RFC 7323, 5.3",
    level="MUST",
    needs=("order",),
    quote="If there is a Timestamps option in the arriving segment, SEG.TSval < TS.Recent, [...] and if the RST bit is "
    "not set, then treat the arriving segment as not acceptable",
    linux="A timestamp that is lower by 1 is taken (TCP_PAWS_WINDOW), so that packets of an instant may be reordered.",
)
_WINDOW = 1


def check(trace: Trace) -> Found:
    stamps = stamps_of(trace)
    arrives = ~trace.out & trace.data & ((trace["flags"] & (RST | SYN)) == 0) & stamps.agreed & (trace["tsval"] >= 0)
    old = arrives & (trace.stamp < stamps.recent - _WINDOW) & (trace.rcv_nxt > NEVER) & (trace.end > trace.rcv_nxt)
    if not old.any():
        return NOTHING
    recent = stamps.recent_at_least
    old &= trace.stamp < recent - _WINDOW
    answer = trace.following(trace.out & trace.has(ACK))
    again = trace.following(~trace.out & trace.data)
    alone = (answer >= 0) & ((again < 0) | (again > answer))
    return where(
        np.asarray(old & alone & (trace["ack"][answer] >= trace.end) & (trace.acked < trace.end)),
        lambda row: (
            f"acknowledges {trace['seq'][row]} with the timestamp {trace['tsval'][row]}; TS.Recent is "
            f"{recent[row] % 2**32}"
        ),
        answer,
    )
