# SPDX-License-Identifier: Apache-2.0
"""Nothing is sent beyond the congestion window."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN
from testctl.rules.core.sender import kernel
from testctl.rules.core.spec import Found, RuleSpec
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import Events

SPEC = RuleSpec(
    name="cwnd-respected",
    must="Segments in flight are at most the congestion window after data was sent; a tail loss probe is let pass.",
    source="RFC 5681, 3.1",
    level="MUST",
    needs=("tcp_events",),
    quote="a TCP MUST NOT send data with a sequence number higher than the sum of the highest acknowledged sequence "
    "number and the minimum of cwnd and rwnd",
    linux="The pipe without SACKed and lost segments is what counts (RFC 6675), and a FIN is always sent, "
    "before 6.12 with the data of its segment: tcp_cwnd_test().",
)


def check(trace: Trace, other: Trace | None) -> Found:
    events = Events(trace)
    sends = events.kind("send", "retransmit")
    waited_us = (events["time_ns"] - events.before("time_ns")) // 1000
    probe = (waited_us >= events["srtt_us"]) & (events["pipe"] <= events["prior_pipe"] + 1)
    fin = events["snd_nxt"] == events.before("snd_nxt") + 1
    if kernel(trace) < (6, 12):
        fin |= np.isin(events["snd_nxt"], trace.end[trace.out & trace.has(FIN)])
    broken = sends & (events["pipe"] > events["cwnd"]) & (events["pipe"] > events["prior_pipe"]) & ~probe & ~fin
    return events.where(
        broken, lambda at: f"{events['pipe'][at]} segments in flight; the window is {events['cwnd'][at]}"
    )
