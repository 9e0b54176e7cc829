# SPDX-License-Identifier: Apache-2.0
"""SACK blocks name only what arrived."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sacks import blocks
from testctl.rules.core.spec import Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="sack-arrived",
    must="All of a SACK block had arrived.",
    source="RFC 2018, 3",
    level="MUST",
    only_if=("sack",),
    any_clock=True,
    quote="Each contiguous block of data queued at the data receiver is defined in the SACK option",
)


def check(trace: Trace) -> Found:
    sacks = blocks(trace)
    if not len(sacks.row):
        return Found()
    if not trace.from_syn[sacks.row].any():
        return undecided("the capture begins within the connection")
    apart = trace.apart[sacks.row]
    whole = trace.arrivals.whole(sacks.start + apart, sacks.end + apart)
    wrong = np.flatnonzero(trace.from_syn[sacks.row] & ((whole >= sacks.row) | (sacks.end <= sacks.start)))
    broken = np.zeros(len(trace), np.bool_)
    broken[sacks.row[wrong]] = True
    block = np.zeros(len(trace), np.int64)
    block[sacks.row[wrong]] = wrong
    return where(
        broken,
        lambda row: f"reports {sacks.start[block[row]]}:{sacks.end[block[row]]}, not all of which had arrived",
        lambda: trace.latest(~trace.out),
    )
