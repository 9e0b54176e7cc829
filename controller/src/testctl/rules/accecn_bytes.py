# SPDX-License-Identifier: Apache-2.0
"""The counters of the AccECN option count what arrived."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import CE, SYN
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="accecn-bytes",
    must="Each counter of the AccECN option is its initial value and the bytes of payload that arrived with its "
    "mark, of which it has 24 bits.",
    source="RFC 9768, 3.2.3",
    level="MUST",
    needs=("order", "packets"),
    quote="Order 0 provides the 24 least significant bits of the r.e0b, r.ceb and r.e1b counters, respectively.",
)
_VALUES = 1 << 24
_COUNTERS = (("accecn_e0", 2, 1), ("accecn_ce", CE, 0), ("accecn_e1", 1, 1))
"""Column, ECN field and initial value."""


def check(trace: Trace) -> Found:
    ecn = ecn_of(trace)
    if not ecn.accurate.any():
        return Found()
    broken = np.zeros(len(trace), np.bool_)
    for column, mark, initial in _COUNTERS:
        arrived = ~trace.out & (trace["ecn"] == mark)
        most = trace.count(trace["length"], arrived & ~trace.has(SYN))
        # What arrives at the same instant may not have been processed.
        least = trace.count(trace["length"], arrived & ecn.acceptable)[trace.instant]
        broken |= (trace[column] >= 0) & ((trace[column] - initial - least) % _VALUES > most - least)
    return where(
        ecn.answers & ecn.accurate & ~ecn.ended & broken,
        lambda row: (
            f"sends an ACK of {trace['ack'][row]} with the counters "
            + ", ".join(f"{column[7:]} {trace[column][row]}" for column, *_ in _COUNTERS)
            + ", which are not those of what arrived"
        ),
    )
