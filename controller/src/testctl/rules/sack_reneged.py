# SPDX-License-Identifier: Apache-2.0
"""What a SACK block reported stays received."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sacks import blocks
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="sack-reneged",
    must="An ACK number never stops within a block that was reported, and no block becomes smaller.",
    source="RFC 2018, 8",
    level="SHOULD",
    needs=("packets",),
    only_if=("sack",),
    quote="Such discarding of SACKed packets is discouraged, but may be used if the receiver runs out of buffer space.",
    linux="A receiver without memory drops what it had queued out of order (tcp_prune_ofo_queue()).",
)


def check(trace: Trace) -> Found:
    sacks = blocks(trace)
    kept = ~sacks.duplicate
    rows, start, end = sacks.row[kept], sacks.start[kept], sacks.end[kept]
    broken, text = np.zeros(len(trace), np.bool_), np.full(len(trace), -1)
    # Within: the first ACK number at or above the block's start is below its end.
    numbers = np.zeros(len(trace), np.int64)
    for number in range(4):
        here = sacks.number[kept] == number
        numbers[rows[here]] = start[here]
        reached = trace.reached(trace["ack"], trace.acks, numbers)[rows[here]]
        stops = (reached >= 0) & (trace["ack"][reached] < end[here])
        broken[reached[stops]] = True
        text[reached[stops]] = rows[here][stops]
    # Smaller: a block that begins, or ends, where an earlier did.
    length = end - start
    for fixed in (start, end):
        order = np.lexsort((rows, fixed, trace.apart[rows]))
        key = fixed[order] + trace.apart[rows[order]]
        group = np.cumsum(np.append(True, key[1:] != key[:-1])) if len(key) else key
        reach = length[order] + group * (int(length.max(initial=0)) + 1)
        smaller = np.flatnonzero(reach[1:] < np.maximum.accumulate(reach)[:-1]) + 1 if len(key) else key
        broken[rows[order][smaller]] = True
    return where(broken, lambda row: f"acknowledges {trace['ack'][row]} and reports less than an earlier ACK", text)
