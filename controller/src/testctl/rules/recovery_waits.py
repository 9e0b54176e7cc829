# SPDX-License-Identifier: Apache-2.0
"""A recovery that is under way waits for no timer."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import TCP_LIMITS
from testctl.rules.core.sender import rack, reordered
from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import RECOVERY, Events

SPEC = RuleSpec(
    name="recovery-waits",
    must="In a recovery, what is lost is sent again with the ACK that shows it, if the window and the pace allow it.",
    source="RFC 8985, 6.2",
    level="SHOULD",
    needs=("start", "mtu", "order", "tcp_events"),
    only_if=("retransmission",),
    quote="If in Fast or RTO recovery: Return 0",
    linux="Not after a reordering was seen: tcp_rack_reo_wnd().",
)
_WAITS = ("cwnd", "pacing")


def check(trace: Trace) -> Found:
    if not rack(trace) or reordered(trace):
        return undecided("losses are detected with a reordering window, or not by time")
    events = Events(trace)
    waits = np.isin(events.before_each(events["limited_by"]), [TCP_LIMITS.index(name) for name in _WAITS])
    alone = events.kind("retransmit") & events.follows & (events["time_ns"] > events.before("time_ns"))
    wrong = alone & ~waits & (events["state"] == RECOVERY) & (events.before("state") == RECOVERY)
    return events.where(wrong, lambda at: "a segment is sent again without an ACK, which had shown its loss before")
