# SPDX-License-Identifier: Apache-2.0
"""A timeout leaves a window of one segment."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN
from testctl.rules.core.sender import TICK_NS, timeouts
from testctl.rules.core.spec import SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="loss-window",
    must="After a timeout a single segment is sent before anything arrives.",
    source="RFC 5681, 3.1",
    level="MUST",
    needs=SENDER,
    quote="upon a timeout (as specified in [RFC2988]) cwnd MUST be set to no more than the loss window, LW, which "
    "equals 1 full-sized segment",
    linux="A FIN without data is sent whatever the window is: tcp_cwnd_test().",
)


def check(trace: Trace, other: Trace | None) -> Found:
    board = trace.board
    time = trace["time_ns"]
    last = trace.latest(timeouts(trace))
    after = board.sent & (last >= 0) & (last > trace.latest(~trace.out))
    soon = after & (time - time[last] < TICK_NS) & ~(trace.has(FIN) & ~trace.data)
    several = timeouts(trace) & (trace["segs"] > 1)
    return where(
        (soon | several) & trace.from_syn,
        lambda row: f"sends {trace['seq'][row]} to {trace.end[row]}, more than a segment, after a timeout",
        np.where(soon, last, -1),
    )
