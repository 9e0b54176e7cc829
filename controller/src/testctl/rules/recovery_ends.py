# SPDX-License-Identifier: Apache-2.0
"""A recovery lasts until all that was sent before it is acknowledged."""

from __future__ import annotations

from testctl.rules.core.spec import Found, RuleSpec
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import CWR, DISORDER, RECOVERY, Events, reduced_by_the_core

SPEC = RuleSpec(
    name="recovery-ends",
    must="A recovery ends with the ACK of all that was sent before it began, and no earlier unless it is undone.",
    source="RFC 6582, 3.2",
    level="MUST",
    needs=("tcp_events",),
    quote="If this ACK acknowledges all of the data up to and including recover, then the ACK acknowledges all the "
    "intermediate segments sent between the original transmission of the lost segment and the receipt of the third "
    "duplicate ACK.",
    linux="Losses that the same ACK shows begin another: ssthresh falls again then, unless it is small. Without SACK "
    "it ends with the ACK behind: tcp_try_undo_recovery().  A reduction that begins as the host's own queue drops "
    "what is sent is not judged.",
)
_LOWER = ("reno", "cubic", "dctcp", "bic", "scalable", "htcp")
"""Their ssthresh falls at each reduction of a window of more than this number of segments."""
_SMALL = 16
_UNDONE = ("Full", "Partial", "DSACK")
"""What Linux counts of reductions that were wrong: TCPFullUndo, …"""


def check(trace: Trace) -> Found:
    events = Events(trace)
    state, was, ssthresh = events["state"], events.before("state"), events["ssthresh"]
    # BBR writes its ssthresh as it drains a queue (bbr_check_drain()), which begins nothing.
    lower = (ssthresh < events.before("ssthresh")) & reduced_by_the_core(trace.cc)
    changes = (state >= CWR) & ((state != was) | lower | ~events.follows | events.kind("timeout"))
    begun = events.before_each(events.last(changes))
    there = events.kind("ack") & events.follows & (was >= CWR) & changes[begun] & events.same(begun)
    there &= ~events.dropped[begun]
    until, una = events.before("snd_nxt")[begun], events["snd_una"]
    counted = trace.records.snmp(trace.host)
    undone = (ssthresh > events.before("ssthresh")) | (events["cwnd"] >= events.before("cwnd")[begun])
    if not reduced_by_the_core(trace.cc) and any(counted.get(f"TcpExt.TCP{what}Undo") for what in _UNDONE):
        undone |= there  # which their windows do not show
    early = there & (state <= DISORDER) & (una < until) & ~undone
    late = (
        there
        & (trace.cc in _LOWER)
        & (state == RECOVERY)
        & (was == RECOVERY)
        & ~lower
        & (una > until)
        & (ssthresh > _SMALL)
    )
    return events.where(
        early | late,
        lambda at: (
            f"a recovery {'ends' if early[at] else 'goes on'} at {una[at]}; it began when {until[at]} had been sent"
        ),
    )
