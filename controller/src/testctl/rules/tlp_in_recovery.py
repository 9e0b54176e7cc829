# SPDX-License-Identifier: Apache-2.0
"""A tail is probed while nothing is known to be lost."""

from __future__ import annotations

from testctl.rules.core.sender import probes
from testctl.rules.core.spec import SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="tlp-in-recovery",
    must="The tail is probed only while no data is SACKed.",
    source="RFC 8985, 7.2",
    level="SHOULD",
    needs=SENDER,
    only_if=("timer",),
    quote="The connection has no SACKed sequences in the SACK scoreboard",
)


def check(trace: Trace) -> Found:
    board = trace.board
    return where(
        probes(trace) & ~board.head & (board.sack_top > trace.una) & ~board.reneged & trace.from_syn,
        lambda row: f"probes the tail from {trace['seq'][row]} on; {board.sacked_bytes[row]} bytes were SACKed",
        lambda: trace.latest(board.acks),
    )
