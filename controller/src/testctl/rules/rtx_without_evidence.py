# SPDX-License-Identifier: Apache-2.0
"""Nothing is sent again without a sign that it is lost."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import SYN
from testctl.rules.core.sender import ms, rto_min_ns
from testctl.rules.core.spec import SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="rtx-without-evidence",
    must="Data is sent again after ACKs that show a loss, or by a timer: neither within two RTTs without such ACKs.",
    source="RFC 793, 2.6",
    level="MUST",
    needs=SENDER,
    only_if=("retransmission",),
    quote="If the acknowledgment is not received before the timer runs out, the segment is retransmitted.",
)


def check(trace: Trace) -> Found:
    board = trace.board
    least = rto_min_ns(trace)
    time = trace["time_ns"]
    head = np.where(board.head_sent >= 0, time - time[np.maximum(board.head_sent, 0)], 0)
    # A SYN-ACK that echoes a SYN's timestamp is a sample too, though the SYN was sent twice.
    syn = trace.latest(trace.out & trace.has(SYN))
    hello = ~trace.out & trace.has(SYN) & (trace["tsecr"] >= 0) & (syn >= 0)
    shortest = np.minimum(board.rtt_min, -trace.highest(time[syn] - time, hello))
    early = (board.waited < np.minimum(2 * shortest, least)) & (head < least)
    return where(
        board.alone & early & trace.from_syn,
        lambda row: (
            f"sends {trace['seq'][row]} again {ms(board.waited[row])} after it was sent, without an ACK that "
            f"shows a loss; the shortest RTT is {ms(shortest[row])}"
        ),
        lambda: board.last_sent,
        lambda: trace.latest(board.acks),
    )
