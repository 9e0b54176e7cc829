# SPDX-License-Identifier: Apache-2.0
"""The smoothed round-trip time follows the measured ones."""

from __future__ import annotations

from testctl.rules.core.spec import Found, RuleSpec
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import Events

SPEC = RuleSpec(
    name="srtt-follows",
    must="An ACK of data that was sent once moves SRTT by an eighth towards the round-trip time that it measures.",
    source="RFC 6298, 2.3",
    level="MUST",
    needs=("start", "mtu", "order", "segments", "tcp_events"),
    quote="SRTT <- (1 - alpha) * SRTT + alpha * R'",
    linux="Of what an ACK acknowledges cumulatively the first segment counts, without any what it SACKs: "
    "tcp_ack_update_rtt().",
)
_ROUNDED_US = 2


def check(trace: Trace) -> Found:
    events, board = Events(trace), trace.board
    at, rows = events.alone
    was, now = events.before("srtt_us"), events["srtt_us"]
    least, most = (events.sparse(at, column[rows] // 1000) for column in (board.latest_samples, board.samples))
    judged = events.sparse(at, board.samples[rows] >= 0) & events.follows & (was > 0)
    early = now < (7 * was + least) // 8 - _ROUNDED_US
    late = now > (7 * was + most) // 8 + _ROUNDED_US
    return events.where(
        judged & (early | late),
        lambda event: f"SRTT goes from {was[event]} us to {now[event]}, at a round-trip time of {most[event]}",
    )
