# SPDX-License-Identifier: Apache-2.0
"""A sender that knows of a gap is not in the open state."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sacks import unsplit
from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import OPEN, Events

SPEC = RuleSpec(
    name="sacked-is-disorder",
    must="While data above the ACK number is SACKed the state is not open.",
    source="Linux, tcp_try_keep_open()",
    level="Linux",
    needs=("start", "order", "tcp_events"),
    only_if=("sack",),
    quote="tcp_left_out(tp)",
)


def check(trace: Trace) -> Found:
    if why := unsplit(trace):
        return undecided(why)
    events, board = Events(trace), trace.board
    at, rows = events.alone
    later = np.minimum(rows + 1, len(trace) - 1)
    there = (trace.first[later] == trace.first[rows]) & (later > rows) & ~board.reneged[later]
    gap = there & (board.sack_top[later] > events["snd_una"][at]) & (events["snd_una"][at] < trace.nxt[later])
    return events.where(
        events.sparse(at, gap & (events["state"][at] == OPEN)),
        lambda event: f"{events['snd_una'][event]} is missing, and the state is open",
    )
