# SPDX-License-Identifier: Apache-2.0
"""The clock of timestamps ticks once in 1 ms to 1 s."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import RST, SYN, Ints
from testctl.rules.core.sender import paced_ns
from testctl.rules.core.spec import Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="timestamp-clock",
    must="Timestamps grow by 1 in 1 ms to 1 s.",
    source="RFC 7323, 5.4",
    level="SHOULD",
    needs=("order",),
    quote="we choose a timestamp clock frequency in the range 1 ms to 1 sec per tick",
    linux="A route with `features tcp_usec_ts` (since 6.7) has ticks of 1 us. What a "
    "timer sends at once has the stamp of the time at which its pace would have let it go (tcp_wstamp_ns), and so has "
    "an ACK or FIN behind a burst.",
)
_SHORTEST_NS, _LONGEST_NS = 1_000_000, 1_000_000_000


def check(trace: Trace) -> Found:
    if not trace.exact:
        return undecided("the host's clock is not the capture's")
    time, value = trace["time_ns"], trace.stamp
    sent = trace.out & (trace["tsval"] >= 0) & ~trace.has(RST)
    # Since the host's first packet behind its SYN, whose timestamp may be a SYN cookie.
    first = trace.following(sent & ~trace.has(SYN))[trace.first]
    passed, ticks = time - time[first], value - value[first]
    known = sent & (first >= 0) & (np.arange(len(trace)) > first)
    # A tick on either side may be cut off, and TCP takes a packet's time before the device has it.
    ahead = np.maximum(paced_ns(trace), _turn_ns(trace))
    broken = known & ((ticks > (passed + ahead) // _SHORTEST_NS + 2) | (ticks < passed // _LONGEST_NS - 1))
    return where(
        np.asarray(broken),
        lambda row: f"sends timestamps that grew by {ticks[row]} in {passed[row] / 1e6:.1f} ms",
        first,
    )


def _turn_ns(trace: Trace) -> Ints:
    """For each row twice the time between the last bursts, the longer of two: the pace held one back that long at most.

    Behind a single burst any time, as nothing shows the pace.
    """
    time, sent = trace["time_ns"], trace.out & trace.data
    last = trace.latest(sent)
    begins = sent & (last >= 0) & (time > time[last])
    apart, at = time - time[np.maximum(last, 0)], trace.latest(begins)
    longer = np.maximum(apart[at], np.where(at[at] >= 0, apart[at[at]], 0))
    return np.asarray(np.where(at >= 0, 2 * longer, np.where(last >= 0, _LONGEST_NS, 0)))
