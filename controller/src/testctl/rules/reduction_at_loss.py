# SPDX-License-Identifier: Apache-2.0
"""A loss reduces the window."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import DISORDER, RECOVERY, Events

SPEC = RuleSpec(
    name="reduction-at-loss",
    must="When a recovery or a timeout begins, ssthresh is at most the window times the congestion control's factor, "
    "or two segments.",
    source="RFC 5681, 3.1; RFC 8257, 3.5",
    level="MUST",
    needs=("tcp_events",),
    quote="ssthresh = max (FlightSize / 2, 2*SMSS)",
    linux="Of the window, not of FlightSize: tcp_reno_ssthresh(); of Cubic (RFC 9438, 4.6) 717/1024 of it, of BIC "
    "819/1024, of Scalable an eighth less, in whole segments. What ICMP finds too long for the path is sent again in "
    "the same state without a reduction: tcp_simple_retransmit(). Variants in lab/cc take FlightSize with what limited "
    "transmit has sent (growth_reno.h), as an example in RFC 6937 does; RFC 5681, 3.2 leaves that out.",
)
_PARTS = {"reno": 512, "dctcp": 512, "cubic": 717, "bic": 819, "scalable": 896}
"""1024ths of the window."""


def check(trace: Trace) -> Found:
    name = trace.cc.partition("_")[0]
    if name not in _PARTS:
        return undecided(f"the factor of {trace.cc or 'the congestion control'} is not known")
    events = Events(trace)
    begins = (events["state"] == RECOVERY) | events.kind("timeout")  # what ICMP finds too long is no loss
    begins &= (events["state"] >= RECOVERY) & (events.before("state") <= DISORDER) & events.follows
    window = events.before("cwnd")
    if "_" in trace.cc and trace.mss:
        flight = -(-(events.before("snd_nxt") - events.before("snd_una")) // trace.mss)
        window = np.maximum(window, flight)
    left = window - (window >> 3) if name == "scalable" else window * _PARTS[name] // 1024
    most = np.maximum(left, 2)
    return events.where(
        begins & (events["ssthresh"] > most),
        lambda at: f"ssthresh is {events['ssthresh'][at]} after a loss with a window of {window[at]}",
    )
