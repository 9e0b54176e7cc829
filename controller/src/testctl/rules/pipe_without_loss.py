# SPDX-License-Identifier: Apache-2.0
"""Without a loss all that was sent and not acknowledged is in flight."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.sacks import exact_acks
from testctl.rules.core.spec import Found, RuleSpec
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import DISORDER, Events

SPEC = RuleSpec(
    name="pipe-without-loss",
    must="While no loss is known, the segments in flight are those sent and not acknowledged, cumulatively or by SACK.",
    source="RFC 6675, 2",
    level="MUST",
    needs=("start", "mtu", "order", "segments", "tcp_events"),
    quote='"Pipe" is a sender\'s estimate of the number of bytes outstanding in the network.',
    linux="In segments: tcp_packets_in_flight(). Connections without SACK are not judged; there a duplicate ACK takes "
    "one away.",
)


def check(trace: Trace) -> Found:
    events, board = Events(trace), trace.board
    at, rows = events.alone
    ack = np.where(board.acks[rows], rows, trace.latest(board.acks)[rows])
    sent = trace.count(trace["segs"], board.sent & ~board.again & ~(trace.has(SYN) & (trace.nxt > NEVER)))
    repaired = trace.highest(trace.end, board.again)[ack] <= events["snd_una"][at]
    judged = (ack >= 0) & (trace["time_ns"][ack] == events["time_ns"][at]) & exact_acks(trace)[rows]
    judged &= repaired & (events["state"][at] <= DISORDER)
    flight = (sent - board.delivered_segments)[ack]
    wanted = events.sparse(at, flight)
    return events.where(
        events.sparse(at, judged & (flight != events["pipe"][at])),
        lambda event: f"counts {events['pipe'][event]} segments in flight; {wanted[event]} are",
    )
