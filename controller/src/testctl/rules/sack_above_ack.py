# SPDX-License-Identifier: Apache-2.0
"""SACK blocks lie above the ACK number."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sacks import blocks
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="sack-above-ack",
    must="SACK blocks begin above the ACK number, a gap between; only the first may be a D-SACK block below.",
    source="RFC 2018, 3; RFC 2883, 4",
    level="MUST",
    only_if=("sack",),
    any_clock=True,
    quote="the bytes just below the block, (Left Edge of Block - 1), and just above the block, (Right Edge of Block), "
    "have not been received",
)


def check(trace: Trace) -> Found:
    sacks = blocks(trace)
    wrong = sacks.row[~sacks.duplicate & (sacks.start <= trace["ack"][sacks.row])]
    broken = np.zeros(len(trace), np.bool_)
    broken[wrong] = True
    return where(broken, lambda row: f"reports a SACK block that does not lie above its ACK of {trace['ack'][row]}")
