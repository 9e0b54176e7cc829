# SPDX-License-Identifier: Apache-2.0
"""The retransmission timer runs for its minimum at least."""

from __future__ import annotations

from testctl.rules.core.sender import ms, rto_min_ns, timeouts
from testctl.rules.core.spec import SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="rto-minimum",
    must="A timeout comes no sooner after the transmission than the minimum of the RTO.",
    source="RFC 6298, 2.4",
    level="SHOULD",
    needs=SENDER,
    only_if=("timer",),
    any_clock=True,
    quote="if it is less than 1 second, then the RTO SHOULD be rounded up to 1 second",
    linux="The minimum is 200 ms: TCP_RTO_MIN in include/net/tcp.h; or what the route's rto_min (2.6.23) or "
    "net.ipv4.tcp_rto_min_us (6.11) says.",
)


def check(trace: Trace) -> Found:
    board = trace.board
    return where(
        timeouts(trace) & (board.waited < rto_min_ns(trace)) & trace.from_syn,
        lambda row: f"sends {trace['seq'][row]} again by a timer {ms(board.waited[row])} after it was sent",
        lambda: board.last_sent,
        lambda: trace.latest(board.acks),
    )
