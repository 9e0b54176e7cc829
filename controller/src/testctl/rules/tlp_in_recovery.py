# SPDX-License-Identifier: Apache-2.0
"""A tail is probed while nothing is known to be lost."""

from __future__ import annotations

from testctl.rules.core.sender import probes, rack
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
    linux="A probe that was due when the SACK blocks came leaves nevertheless, if losses are not detected by time "
    "(net.ipv4.tcp_recovery=0, before 6.17), which stops its timer.",
)


def check(trace: Trace) -> Found:
    board = trace.board
    broken = probes(trace) & ~board.head & (board.sack_top > trace.una) & ~board.reneged & trace.from_syn
    if not rack(trace):
        moved = trace.latest(board.acks & (trace["ack"] > trace.una))
        broken &= (moved >= 0) & (board.sack_top[moved + 1] > trace.una)
    return where(
        broken,
        lambda row: f"probes the tail from {trace['seq'][row]} on; {board.sacked_bytes[row]} bytes were SACKed",
        lambda: trace.latest(board.acks),
    )
