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
    source="RFC 5681, 3.1",
    level="MUST",
    needs=("tcp_events",),
    quote="ssthresh = max (FlightSize / 2, 2*SMSS)",
    linux="Of the window, not of FlightSize: tcp_reno_ssthresh(); of Cubic (RFC 9438, 4.6) 717/1024 of it, of BIC "
    "819/1024, of Scalable 7/8. Variants in lab/cc take FlightSize with what limited transmit has sent "
    "(growth_reno.h), as an example in RFC 6937 does; RFC 5681, 3.2 leaves that out.",
)
_FACTORS = {"reno": 0.5, "cubic": 717 / 1024, "bic": 819 / 1024, "scalable": 7 / 8}


def check(trace: Trace, other: Trace | None) -> Found:
    factor = _FACTORS.get(trace.cc.partition("_")[0])
    if factor is None:
        return undecided(f"the factor of {trace.cc or 'the congestion control'} is not known")
    events = Events(trace)
    begins = (events["state"] >= RECOVERY) & (events.before("state") <= DISORDER) & events.follows
    window = events.before("cwnd")
    if "_" in trace.cc and trace.mss:
        flight = -(-(events.before("snd_nxt") - events.before("snd_una")) // trace.mss)
        window = np.maximum(window, flight)
    most = np.maximum(np.floor(window * factor), 2)
    return events.where(
        begins & (events["ssthresh"] > most),
        lambda at: f"ssthresh is {events['ssthresh'][at]} after a loss with a window of {window[at]}",
    )
