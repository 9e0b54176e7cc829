# SPDX-License-Identifier: Apache-2.0
"""The timer is short again after an RTT was measured."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import RTO_MIN_NS, TICK_NS, ms, on_time, sysctl, timers
from testctl.rules.core.spec import SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import quiet_ns

SPEC = RuleSpec(
    name="rto-restored",
    must="After an ACK measured the RTT, a timeout comes within five times the longest RTT, or 200 ms after it.",
    source="RFC 6298, 5",
    level="SHOULD",
    needs=SENDER,
    only_if=("timer",),
    quote="once a new RTT measurement is obtained, the computations outlined in Section 2 are performed, including "
    'the computation of RTO, which may result in "collapsing" RTO back down',
    linux="With timestamps (RFC 7323, 4) an ACK of a SYN or of data that was sent again measures too, since what it "
    "echoes was sent: tcp_ack_update_rtt().",
)


def check(trace: Trace) -> Found:
    board = trace.board
    quiet = quiet_ns(trace)
    measured = trace.latest(board.samples >= 0) > trace.latest(timers(trace))
    longest = np.maximum(board.rtt_max, board.rtt_echoed)
    floor = max(RTO_MIN_NS, sysctl(trace, "tcp_rto_min_us", 0) * 1000)
    most = np.maximum(5 * longest, longest + floor) + 2 * TICK_NS
    broken = board.by_timer & measured & (on_time(quiet) > most)
    return where(
        broken & trace.from_syn,
        lambda row: f"a timeout after {ms(quiet[row])}; the longest RTT was {ms(longest[row])}",
        lambda: trace.latest(board.samples >= 0),
    )
