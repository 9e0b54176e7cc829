# SPDX-License-Identifier: Apache-2.0
"""A D-SACK block for data that arrives again."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.rows import NEVER
from testctl.rules.core.sacks import compression_ns, in_use
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="dsack-of-duplicate",
    must="Where SACK is in use, the ACK of data that arrives again reports it as the first block.",
    source="RFC 2883, 4",
    level="SHOULD",
    needs=("order", "packets"),
    quote="the first block of the SACK option should be a D-SACK block specifying the sequence numbers for the "
    "duplicate segment that triggers the acknowledgement",
    linux="Since 4.18 the ACK of a duplicate behind a gap may wait (tcp_comp_sack_delay_ns), and the next segment then "
    "clears its D-SACK (rx_opt.dsack in tcp_data_queue()). It waits too while half of the receive buffer is taken and "
    "data is not acknowledged: __tcp_ack_snd_check() asks for the window, and that ends quick ACKs "
    "(__tcp_select_window()).",
)


def check(trace: Trace) -> Found:
    if int(trace.settings.get("net.ipv4.tcp_dsack", 1)) == 0:
        return undecided("D-SACK is off")
    if not trace.repeated.any():
        return NOTHING
    again = trace.repeated & ~trace.refused & trace.from_syn & in_use(trace) & (trace.rcv_nxt > NEVER)
    if trace.reads_slowly:
        again &= trace.rcv_nxt <= trace.acked
    broken = trace.late(again, np.full(len(trace), -1), trace.at_once_ns)
    if not broken.any():
        return NOTHING
    answer = trace.following(trace.acks)
    time, limit = trace["time_ns"], trace.at_once_ns
    # The ACK waited, behind a gap, while more data came.
    wait, more = time[answer] - time, trace.following(~trace.out & trace.data)
    forgotten = (answer > more) & (more >= 0) & (wait > limit) & (wait <= limit + compression_ns(trace))
    broken &= ~(forgotten & (trace.seen > trace.rcv_nxt))
    start, end = trace["sack1_start"], trace["sack1_end"]
    for row in np.flatnonzero(broken).tolist():
        # The ACK that answers it: some of those at once, where several packets came before them, or the next.
        stop = np.searchsorted(time[row:], time[row] + limit + trace.reading_ns[row], side="right") + row
        stop = max(int(stop), int(answer[row]) + 1)
        reports = trace.acks[row:stop] & (start[row:stop] <= trace["seq"][row]) & (end[row:stop] > trace["seq"][row])
        broken[row] = not reports.any()
    return where(
        broken,
        lambda row: f"received {trace['seq'][row]}:{trace['seq'][row] + trace['length'][row]} again, without a D-SACK",
        answer,
    )
