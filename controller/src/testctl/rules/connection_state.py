# SPDX-License-Identifier: Apache-2.0
"""How far a connection's end is with closing it is what the FINs show."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN, RST
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import samples

SPEC = RuleSpec(
    name="connection-state",
    must="The state of a connection is the one that its FINs and their ACKs lead to.",
    source="RFC 9293, 3.3.2",
    level="MUST",
    needs=("start", "order", "packets"),
    quote="FIN-WAIT-2 - represents waiting for a connection termination request from the remote TCP peer",
    linux="Judged are samples of tcp_info, from ESTABLISHED on.",
)
_NAMES = {
    1: "ESTABLISHED", 4: "FIN-WAIT-1", 5: "FIN-WAIT-2", 6: "TIME-WAIT", 7: "CLOSED", 8: "CLOSE-WAIT", 9: "LAST-ACK",
    11: "CLOSING",
}  # fmt: skip
"""By Linux's numbers (include/net/tcp_states.h)."""
_STATES = {
    (False, False, False): (1, 4), (True, False, False): (4,), (True, True, False): (5, 6, 7),
    (False, False, True): (8, 9, 11), (True, False, True): (9, 11), (True, True, True): (6, 7),
}  # fmt: skip
"""By whether the host's FIN was sent, whether it was acknowledged, and whether the peer's came, with all before it.

A FIN that is to follow data changes the state before it is sent.  Of what no program holds Linux may keep less than
FIN-WAIT-2: it is in TIME-WAIT then, or CLOSED.
"""


def check(trace: Trace) -> Found:
    taken = samples(trace, states=tuple(_NAMES))
    rows, state = taken["row"], taken["state"]
    own, theirs = trace.out & trace.has(FIN), ~trace.out & trace.has(FIN)
    sent = trace.highest(trace.end, own, inclusive=True)[rows]
    una = trace.highest(trace["ack"], trace.board.acks, inclusive=True)[rows]
    came = (trace.highest(trace.end, theirs, inclusive=True) == trace.arrived_to)[rows]
    settled = taken["time_ns"] - trace["time_ns"][rows] >= trace.at_once_ns
    settled &= (trace.from_syn & ~trace.anywhere(trace.has(RST)))[rows]
    wrong = np.zeros(len(rows), np.bool_)
    for (left, acked, arrived), right in _STATES.items():
        here = ((sent > 0) == left) & ((left & (una >= sent)) == acked) & (came == arrived)
        wrong |= settled & here & ~np.isin(state, right)
    at = np.flatnonzero(wrong)
    sample = trace.sparse(rows[at], at)
    return where(
        np.isin(np.arange(len(trace)), rows[at]),
        lambda row: f"is in the state {_NAMES[int(state[sample[row]])]}, which its FINs do not lead to",
    )
