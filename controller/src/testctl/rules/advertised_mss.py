# SPDX-License-Identifier: Apache-2.0
"""The MSS that a host offers is what its MTU leaves for a segment."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import SYN
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import samples

SPEC = RuleSpec(
    name="advertised-mss",
    must="The MSS that TCP counts on receiving is the host's MTU without the headers of IP and TCP and the timestamps.",
    source="RFC 9293, 3.7.1; RFC 6691, 2",
    level="SHOULD",
    needs=("start", "order"),
    quote="the MTU value SHOULD be decreased by only the size of the fixed IP and TCP headers",
    linux="Judged are samples of tcp_info (advmss).",
)
_ETHERNET = 14


def check(trace: Trace) -> Found:
    bare = trace.out & trace.pure_ack & (trace["sack1_end"] < 0)
    for counter in ("accecn_e0", "accecn_ce", "accecn_e1"):  # of an option that not all segments have
        bare = bare & (trace[counter] < 0)
    mtu = trace.settings.get("mtu")
    if mtu is None or not bare.any():
        return NOTHING
    fits = int(mtu) + _ETHERNET - int((trace["wire_bytes"] - trace["length"])[bare].min())
    taken = samples(trace, "advmss")
    wrong = taken["advmss"] != fits
    sample = trace.sparse(taken["row"][wrong], taken["advmss"][wrong])
    return where(
        np.isin(np.arange(len(trace)), taken["row"][wrong]) & ~trace.has(SYN),
        lambda row: f"counts on segments of {sample[row]} bytes; {fits} fit an MTU of {mtu}",
    )
