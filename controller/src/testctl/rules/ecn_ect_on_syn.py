# SPDX-License-Identifier: Apache-2.0
"""No ECT on SYN and SYN-ACK."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import SYN
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-ect-on-syn",
    must="SYN and SYN-ACK are not ECN-capable.",
    source="RFC 3168, 6.1.1",
    level="MUST",
    any_clock=True,
    quote="A host MUST NOT set ECT on SYN or SYN-ACK packets.",
    linux="Congestion control with TCP_CONG_NEEDS_ECN (dctcp) has ECT on them (tcp_ecn_send_syn(), "
    "tcp_ecn_send_synack()), an experiment that RFC 8311, 4.3 allows.",
)


def check(trace: Trace) -> Found:
    late = trace.option("generator", "tgen") != "tgen" and str(trace.settings.get("cc", "")).startswith("dctcp")
    if trace.dctcp or late:  # a program that sets its own does so when it is connected
        return Found()
    return where(
        np.asarray(trace.out & trace.has(SYN) & (trace["ecn"] > 0)),
        lambda row: f"sends a SYN with the ECN field {trace['ecn'][row]}",
    )
