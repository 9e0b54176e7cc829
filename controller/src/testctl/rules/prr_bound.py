# SPDX-License-Identifier: Apache-2.0
"""In recovery no more is sent than was delivered."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import RECOVERY, Events

SPEC = RuleSpec(
    name="prr-bound",
    must="After an ACK in recovery no more segments are sent than were delivered and not yet sent for, and one.",
    source="RFC 6937, 3.1",
    level="SHOULD",
    needs=("tcp_events",),
    quote="limit = MAX(prr_delivered - prr_out, DeliveredData) + MSS",
    linux="The segment more is given only while the recovery makes progress, as in RFC 9937: tcp_cwnd_reduction(). A "
    "recovery that follows a reduction for marks goes on with its numbers: tcp_enter_recovery().",
)
_OTHER_WAYS = ("rfc6675", "halving", "ub")
"""What variants of the testbed do in recovery instead: the part of their names after the last _."""


def check(trace: Trace) -> Found:
    name = trace.cc
    if name.startswith("bbr") or name.rpartition("_")[2] in _OTHER_WAYS:
        return undecided(f"{name} sends in recovery by a way of its own")
    events = Events(trace)
    ack = events.kind("ack")
    # What was delivered and sent counts from where a reduction begins; an ACK may end a recovery and begin another.
    another = (events["ssthresh"] < events.before("ssthresh")) & (events["snd_una"] > events.before("snd_una"))
    run = events.last(events.begins | (events.reduces() & another))
    new, sent = events.delivered, events.sent
    total_new, total_sent = np.cumsum(new), np.cumsum(sent)
    last_ack = events.last(ack)
    delivered = total_new[last_ack] - (total_new - new)[run]
    out = total_sent[last_ack] - (total_sent - sent)[run]
    burst = total_sent - total_sent[last_ack]
    most = np.maximum(delivered - out, new[last_ack]) + 1
    return events.where(
        (events["state"] == RECOVERY) & ~ack & (last_ack >= run) & (burst > most),
        lambda at: f"{burst[at]} segments sent after an ACK in recovery; at most {most[at]} by what was delivered",
    )
