# SPDX-License-Identifier: Apache-2.0
"""A reduction ends with the window at ssthresh."""

from __future__ import annotations

from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import NO_SSTHRESH, Events, reduced_by_the_core

SPEC = RuleSpec(
    name="window-after-recovery",
    must="When a recovery, or a reduction for marks, ends, the window is ssthresh.",
    source="RFC 5681, 3.2",
    level="MUST",
    needs=("tcp_events",),
    quote="When the next ACK arrives that acknowledges previously unacknowledged data, a TCP MUST set cwnd to ssthresh",
    linux="At the ACK that ends it, by which the window may grow, hybla's the more the longer the RTT: "
    "tcp_end_cwnd_reduction(). Where the reduction was wrong the window is what it was before: "
    "tcp_undo_cwnd_reduction().",
)


def check(trace: Trace) -> Found:
    if not reduced_by_the_core(trace.cc) or trace.cc == "illinois":
        return undecided(f"{trace.cc or 'the congestion control'} may set its window by itself")
    events = Events(trace)
    ssthresh, window = events["ssthresh"], events["cwnd"]
    ends = events.kind("ack") & events.reduces(before=True) & ~events.reduces() & (ssthresh < NO_SSTHRESH)
    ends &= (ssthresh == events.before("ssthresh")) & (window != events.before("cwnd")[events.reduction])
    return events.where(
        ends & ((window < ssthresh) | (trace.cc != "hybla") & (window > ssthresh + events.delivered)),
        lambda at: f"the window is {window[at]} when a reduction to {ssthresh[at]} ends",
    )
