# SPDX-License-Identifier: Apache-2.0
"""The retransmission timer follows the RTT."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import TICK_NS, ms, rto_max_ns, timeouts
from testctl.rules.core.spec import SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="rto-by-rtt",
    must="A timeout comes no sooner after the transmission than SRTT + 4 * RTTVAR.",
    source="RFC 6298, 2.3",
    level="MUST",
    needs=SENDER,
    only_if=("timer",),
    quote="RTO <- SRTT + max (G, K*RTTVAR)",
    linux="The deviation is smoothed by an eighth of its growth while the RTT falls, and its highest of the last RTT "
    "counts: tcp_rtt_estimator(). The timer runs from when the first segment was sent, not from the last ACK, when "
    "it takes over from a tail loss probe: tcp_rearm_rto(). It is at most 120 s (TCP_RTO_MAX), or "
    "net.ipv4.tcp_rto_max_ms (6.15).",
)


def check(trace: Trace) -> Found:
    rows = np.flatnonzero(timeouts(trace) & trace.from_syn)
    rto, most = np.zeros(len(trace), np.int64), rto_max_ns(trace)
    for row in rows.tolist():
        srtt, rttvar = trace.board.estimate(row)
        rto[row] = int(min(srtt + 4 * rttvar, most)) - TICK_NS
    return where(
        trace.board.waited < np.where(rto > 0, rto, 0),
        lambda row: (
            f"sends {trace['seq'][row]} again by a timer {ms(trace.board.waited[row])} after it was sent; "
            f"by RTTs measured, the RTO is {ms(rto[row] + TICK_NS)}"
        ),
        lambda: trace.board.last_sent,
    )
