# SPDX-License-Identifier: Apache-2.0
"""After a timeout new data shows whether it was spurious."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import TCP_LIMITS
from testctl.rules.core.sender import sysctl
from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import LOSS, RECOVERY, Events, new_data

_SOON = 10
_NOTHING_NEW = [TCP_LIMITS.index(limit) for limit in ("application", "send_buffer", "receiver_window")]

SPEC = RuleSpec(
    name="frto-new-data",
    must="The first ACK after a timeout that acknowledges a part of what was sent is answered with new data, if "
    "there is any and it fits the window.",
    source="RFC 5682, 2.1; Linux, tcp_process_loss()",
    level="SHOULD",
    needs=("start", "order", "tcp_events"),
    only_if=("timer",),
    quote="Step 2.b. Try send new data (but deferred until cwnd is updated in tcp_ack()).",
    linux="Not after a timeout within a recovery: tcp_enter_loss().",
)


def check(trace: Trace) -> Found:
    if not sysctl(trace, "tcp_frto", 2) or sysctl(trace, "tcp_mtu_probing", 0):
        return undecided("F-RTO is not in use (net.ipv4.tcp_frto), or the MTU is probed")
    if trace.option("send_buffer", "none") not in ("none", None):
        return undecided(f"the send buffer of {trace.flow} may be full, so that there is no new data")
    events = Events(trace)
    every, una, sent, time = np.arange(len(events)), events["snd_una"], events["snd_nxt"], events["time_ns"]
    timeout, new, before = events.kind("timeout"), events.kind("send"), events.before_each
    last = events.last(timeout)
    moved = events.kind("ack") & events.same(last) & (last < every) & (una > una[last])
    mover = before(events.last(moved))  # the one before
    first = moved & timeout[last] & ~(events.same(mover) & (mover > last)) & (events.before("state")[last] < RECOVERY)
    # New data is there if some leaves within a few round trips.
    following = np.append(np.flatnonzero(new), len(events))[np.cumsum(new)]
    at = np.minimum(following, len(events) - 1)
    soon = (following < len(events)) & events.same(at) & (time[at] - time < _SOON * 1000 * events["srtt_us"])
    first &= events.before("state") == LOSS  # the timeout was not taken back
    partial = first & (una < sent[last]) & soon & (events["limited_by"] == TCP_LIMITS.index("nothing"))
    partial &= events.offered(partial) >= sent + trace.mss
    partial &= ~np.isin(events.before("limited_by")[last], _NOTHING_NEW)  # there was none at the timeout
    wrong = before(partial) & events.follows & events.kind("retransmit") & (time == events.before("time_ns"))
    wrong &= ~np.isin(events["limited_by"], _NOTHING_NEW)
    rows = np.array([events.row(int(event)) for event in np.flatnonzero(wrong)], np.int64)
    sent_last = trace.latest(new_data(trace))[rows]  # which ends what was written, if it is short
    wrong[wrong] = trace["length"][sent_last] >= trace["segs"][sent_last] * trace.mss
    return events.where(wrong, lambda at: f"an ACK of {una[at]} after a timeout is answered with a retransmission")
