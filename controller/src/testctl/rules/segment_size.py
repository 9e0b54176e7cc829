# SPDX-License-Identifier: Apache-2.0
"""No packet is longer than the MTU of either end."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="segment-size",
    must="Packets are no longer than the host's MTU, nor than the peer's, from which it has its MSS option.",
    source="RFC 9293, 3.7.1",
    level="MUST",
    any_clock=True,
    quote="the 'effective send MSS' MUST be the smaller (MUST-16) of the send MSS [...] and the largest transmission "
    "size permitted by the IP layer",
)
_ETHERNET = 14
_USUAL_MTU = 1500


def check(trace: Trace) -> Found:
    requested = trace.records.point.flow(trace.flow)
    ends = (trace.host,) if requested is None else requested.ends
    settings = trace.records.point.settings
    mtu = min(int(settings.get(host, {}).get("mtu", _USUAL_MTU)) for host in ends)
    wire, segs = trace["wire_bytes"], np.maximum(trace["segs"], 1)
    return where(
        np.asarray(trace.out & (wire > segs * np.int64(mtu + _ETHERNET))),
        lambda row: f"sends packets of {-(-wire[row] // segs[row]) - _ETHERNET} bytes; the MTU is {mtu}",
    )
