# SPDX-License-Identifier: Apache-2.0
"""Nothing new behind the FIN."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN, RST, SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="fin-is-last",
    must="Nothing new is sent behind the FIN, and a FIN that is sent again has the same number.",
    source="RFC 9293, 3.6",
    level="MUST",
    only_if=("fin",),
    any_clock=True,
    quote="CLOSE is an operation meaning 'I have no more data to send.'",
)


def check(trace: Trace) -> Found:
    fin = trace.out & trace.has(FIN)
    sent = trace.out & (trace.data | fin) & ~trace.has(RST)
    sent[: int(np.argmax(fin)) + 1] = False  # up to the first FIN
    if not sent.any():
        return NOTHING
    end = trace.highest(trace.end, fin)
    opened = trace.latest(trace.has(SYN)) > trace.latest(fin)
    sent &= (end > NEVER) & ~opened
    return where(
        np.asarray(sent & np.where(fin, trace.end != end, trace.end >= end)),
        lambda row: f"sends {trace['seq'][row]} to {trace.end[row]}; the FIN before was {end[row] - 1}",
        lambda: trace.latest(fin),
    )
