# SPDX-License-Identifier: Apache-2.0
"""In a recovery only what was sent after the last that arrived is in flight."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import TCP_LIMITS
from testctl.rules.core.sacks import in_use
from testctl.rules.core.sender import rack, reordered
from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import RECOVERY, Events, arrived_by, last_rows

SPEC = RuleSpec(
    name="rack-pipe",
    must="In a recovery the segments in flight are those sent after the last sent of all that were acknowledged; the "
    "others are lost.",
    source="RFC 8985, 6.2",
    level="MUST",
    needs=("start", "mtu", "order", "segments", "tcp_events"),
    only_if=("retransmission", "sack"),
    quote="a packet is considered lost if some packet sent sufficiently later has been delivered",
    linux="Until a reordering was seen, and not of senders that pace: their packets have the time of their turn.  What "
    "the next ACK sets right is let pass.",
)


def check(trace: Trace) -> Found:
    if not rack(trace) or reordered(trace):
        return undecided("losses are detected with a reordering window, or not by time")
    events, board = Events(trace), trace.board
    if (events["limited_by"] == TCP_LIMITS.index("pacing")).any():
        return undecided("the sender paces")
    at, rows = events.alone
    rows = arrived_by(trace, rows)
    following = np.minimum(rows + 1, len(trace) - 1)
    last, segs = board.newest[rows], np.where(board.sent, np.maximum(trace["segs"], 1), 0)
    row = np.maximum(last, 0)
    total = trace.count(segs, board.sent) + segs
    # Of a packet of several segments those above what arrived may be in flight.
    top = np.maximum(trace.una[following], board.sack_top[following])
    size = -(-trace["length"][row] // np.maximum(segs[row], 1))
    rest = np.clip(-(-(trace.end[row] - top) // np.maximum(size, 1)), 0, segs[row])
    flight = total[rows] - total[row] + np.where(board.again[row], 0, rest)
    judged = (last >= 0) & ~(board.again[row] & (segs[row] > 1)) & in_use(trace)[rows] & ~board.reneged[rows]
    # Of packets of the same microsecond that with the highest number passes for the latest (RFC 8985, 6.2): what was
    # sent again behind it is lost when it is acknowledged, and sent once more.
    micros, before = trace["time_ns"] // 1000, trace.latest(board.sent & ~board.again, board.again)
    tied = board.again & (before >= 0) & (micros[before] == micros)
    judged &= trace.latest(tied)[rows] < 0
    # What was sent again before the recovery may have arrived the first time: its RTT is no measure of what is late.
    begins = events.last((events["state"] == RECOVERY) & (events.before("state") != RECOVERY))[at]
    begin = last_rows(trace, events["conn"][begins], events["time_ns"][begins])
    earlier = trace.latest(board.again)[begin]
    judged &= ~(board.again[row] & (row < begin)) & ~((earlier >= 0) & (trace.end[earlier] > trace.una[begin]))
    judged &= (trace["conn"][following] == trace["conn"][rows]) & (following > rows)
    judged &= (events["state"][at] == RECOVERY) & (events.before("state")[at] == RECOVERY)
    off, conn = judged & (events["pipe"][at] != flight), events["conn"][at]
    off &= events.before_each(off) & (conn == events.before_each(conn))
    wanted = events.sparse(at, flight)
    return events.where(
        events.sparse(at, off),
        lambda event: f"{events['pipe'][event]} in flight; {wanted[event]} were sent after the last delivered",
    )
