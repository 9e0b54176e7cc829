# SPDX-License-Identifier: Apache-2.0
"""In a reduction the window follows from what was delivered and sent."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import sysctl
from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import RECOVERY, Events, reduced_by_the_core

SPEC = RuleSpec(
    name="prr-window",
    must="After an ACK in a reduction the window is what is in flight and what Proportional Rate Reduction lets go.",
    source="RFC 6937, 3",
    level="SHOULD",
    needs=("segments", "tcp_events"),
    quote="sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out",
    linux="With the window for RecoverFS, and at least one segment at the beginning: tcp_cwnd_reduction(). With less "
    "than ssthresh in flight at least what the ACK delivered may go, and at most what the rule prr-bound allows.",
)


def check(trace: Trace) -> Found:
    if not reduced_by_the_core(trace.cc):
        return undecided(f"{trace.cc or 'the congestion control'} may reduce its window by a way of its own")
    undoes = bool(trace.records.snmp(trace.host).get("TcpExt.TCPPartialUndo"))
    if undoes and not sysctl(trace, "tcp_sack", 1):
        return undecided("without SACK an ACK may undo a reduction and begin another")
    events = Events(trace)
    ack, run = events.kind("ack"), events.reduction
    # The timer of RACK's reordering window begins a recovery as if it had delivered one.
    recovers = (events["state"] == RECOVERY) & (events.before("state") != RECOVERY)
    by_timer = np.where(ack, events["prior_pipe"] < events.before("pipe"), events.kind("retransmit"))
    new = events.delivered + (recovers & by_timer)
    delivered, out = (np.cumsum(of) - (np.cumsum(of) - of)[run] for of in (new, events.sent))
    ssthresh, pipe = events["ssthresh"], events["pipe"]
    room = ssthresh - pipe
    share = -(-ssthresh * delivered // np.maximum(events.before("cwnd")[run], 1)) - out
    first = (out == 0).astype(np.int64)
    least = np.maximum(np.where(room < 0, share, np.minimum(room, new)), first)
    most = np.maximum(np.where(room < 0, share, np.minimum(room, np.maximum(delivered - out, new) + 1)), first)
    # Another reduction may begin with the ACK that ends one; and one that was wrong is undone, and begun again.
    judged = ack & events.reduces() & events.follows[run] & (events["snd_una"] < events.recovery_point)
    judged &= ~events.dropped[run]
    # An ACK that delivers nothing leaves the window as it is.
    window, idle = events.before("cwnd"), (new == 0) & ~events.begins
    least, most = (np.where(idle, window - pipe, more) for more in (least, most))
    anew = (events["snd_una"] > events.before("snd_una")) & (events["cwnd"] == pipe + 1) & np.bool_(undoes)
    undone = events.last(ack & (anew | (pipe > events["prior_pipe"]) | (ssthresh > events.before("ssthresh"))))
    judged &= (undone < run) & ((events["cwnd"] < pipe + least) | (events["cwnd"] > pipe + most))
    return events.where(
        judged,
        lambda at: (
            f"the window is {events['cwnd'][at]} with {pipe[at]} in flight; {delivered[at]} were delivered and "
            f"{out[at]} sent since the reduction to {ssthresh[at]} began, so that {least[at]} to {most[at]} may go"
        ),
    )
