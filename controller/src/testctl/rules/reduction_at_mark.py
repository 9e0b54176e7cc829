# SPDX-License-Identifier: Apache-2.0
"""A mark reduces the window, and nothing else does so as a mark does."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ECE, SYN
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import Found, RuleSpec
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import CWR, DISORDER, Events, arrived_by

SPEC = RuleSpec(
    name="reduction-at-mark",
    must="An ACK with ECE begins a reduction of the window, unless one is under way; without it only a loss does.",
    source="RFC 3168, 6.1.2",
    level="MUST",
    needs=("start", "order", "tcp_events"),
    only_if=("classic_ecn",),
    quote="The indication of congestion should be treated just as a congestion loss in non-ECN-Capable TCP.",
    linux="CDG reduces its window so when the delay grows: tcp_cdg_backoff().",
)


def check(trace: Trace) -> Found:
    events = Events(trace)
    at, rows = events.alone
    marked = trace.board.acks & trace.has(ECE) & ~trace.has(SYN) & ecn_of(trace).classic & (trace["ack"] >= trace.una)
    last = np.where(marked[rows], rows, trace.latest(marked)[rows])
    now = events.sparse(at, (last >= 0) & (trace["time_ns"][last] == events["time_ns"][at]))
    missing = now & (events["state"] < CWR)
    begins = (events["state"] == CWR) & (events.before("state") <= DISORDER) & events.follows
    # An ACK waits while the application has the socket, so that its event is later.
    wrong = events.sparse(at, begins[at] & ~marked[arrived_by(trace, rows)]) & (not trace.cc.startswith("cdg"))
    return events.where(
        missing | wrong,
        lambda event: (
            f"an ACK {'has ECE, and begins no' if missing[event] else 'without ECE begins a'} reduction; the window is "
            f"{events['cwnd'][event]}"
        ),
    )
