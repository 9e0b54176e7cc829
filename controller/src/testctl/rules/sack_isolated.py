# SPDX-License-Identifier: Apache-2.0
"""A SACK block has all that arrived around it."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sacks import blocks
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="sack-isolated",
    must="The bytes just below and just above a SACK block have not arrived.",
    source="RFC 2018, 3",
    level="MUST",
    needs=("start", "order", "packets"),
    only_if=("sack", "gap"),
    quote="Each block represents received bytes of data that are contiguous and isolated; that is, the bytes just "
    "below the block, (Left Edge of Block - 1), and just above the block, (Right Edge of Block), have not been "
    "received.",
    linux="It remembers four blocks, and forgets others: tcp_sack_new_ofo_skb(). Where an ACK has three or more "
    "nothing is judged until all gaps are filled.",
)


def check(trace: Trace) -> Found:
    sacks = blocks(trace)
    row, apart, time = sacks.row, trace.apart[sacks.row], trace["time_ns"]
    if not len(row):
        return NOTHING
    came = np.minimum(*(trace.arrivals.whole(byte + apart, byte + apart + 1) for byte in (sacks.start - 1, sacks.end)))
    known = came < row
    known[known] = time[came[known]] + trace.at_once_ns < time[row[known]]
    several = np.isin(np.arange(len(trace)), row[sacks.number >= 2])
    forgets = several | (trace.latest(several) > trace.latest(trace.rcv_nxt >= trace.seen))
    known &= ~forgets[row] & ~sacks.duplicate & ~trace.refused[row]
    wrong = np.flatnonzero(known)
    place = trace.sparse(row[wrong], wrong)
    return where(
        trace.sparse(row[wrong], known[wrong]),
        lambda at: f"reports {sacks.start[place[at]]}:{sacks.end[place[at]]}; a byte beside it had arrived",
        lambda: trace.sparse(row[wrong], came[wrong]),
    )
