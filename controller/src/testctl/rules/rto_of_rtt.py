# SPDX-License-Identifier: Apache-2.0
"""The retransmission timeout follows from the round-trip time."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import TICK_NS, ms, rto_max_ns, rto_min_ns
from testctl.rules.core.spec import Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import samples

SPEC = RuleSpec(
    name="rto-of-rtt",
    must="The RTO is SRTT and at least the minimum of the RTO, and no more while round-trip times are short and "
    "nothing was sent again.",
    source="RFC 6298, 2.3",
    level="MUST",
    needs=("start", "order"),
    quote="RTO <- SRTT + max (G, K*RTTVAR)",
    linux="The minimum is that of the term with RTTVAR: __tcp_set_rto(). Judged are samples of tcp_info before any "
    "timeout has doubled it. It is at most 120 s (TCP_RTO_MAX), or net.ipv4.tcp_rto_max_ms (6.15).",
)
_SHORT = 5
"""Of RTTs up to this part of the minimum four times RTTVAR is below it, whatever they are."""


def check(trace: Trace) -> Found:
    if trace.records.snmp(trace.host).get("TcpExt.SyncookiesRecv"):
        return undecided("the first RTT of a connection from a SYN cookie is up to 64 ms too long")
    taken = samples(trace, "rto", "rtt", "backoff")
    judged = np.flatnonzero((taken["backoff"] == 0) & (taken["rtt"] > 0))
    rows, rto, srtt = taken["row"][judged], 1000 * taken["rto"][judged], 1000 * taken["rtt"][judged]
    minimum, board = rto_min_ns(trace), trace.board
    # After a retransmission an RTT may be measured by timestamps alone, of which packets do not say which counted.
    # Until data is acknowledged the RTO may be that of earlier connections (tcp_init_metrics()).
    longest = np.maximum(np.maximum(board.rtt_max, board.samples), board.rtt_echoed)
    measured = (board.samples >= 0) & (trace["ack"] > 0)
    known = trace.highest(trace["ack"], measured, inclusive=True) > 0
    short = (known & ~board.resent & (longest < minimum // _SHORT))[rows]
    least, most = np.minimum(srtt + minimum, rto_max_ns(trace)), srtt + minimum + 3 * TICK_NS
    wrong = np.flatnonzero((rto < least) | (short & (rto > most)))
    sample = trace.sparse(rows[wrong], wrong)
    return where(
        np.isin(np.arange(len(trace)), rows[wrong]),
        lambda row: f"the RTO is {ms(rto[sample[row]])} at an SRTT of {ms(srtt[sample[row]])}",
    )
