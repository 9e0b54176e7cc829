# SPDX-License-Identifier: Apache-2.0
"""The window is reduced once in a round trip."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import DISORDER, LOSS, OPEN, RECOVERY, Events

SPEC = RuleSpec(
    name="reduction-once",
    must="Until what was sent before ssthresh was reduced is acknowledged, only a timeout reduces it again, or the "
    "loss of a retransmission after one.",
    source="RFC 6582, 3.2",
    level="MUST",
    needs=("tcp_events",),
    quote="If not, the TCP does not enter fast retransmit and does not reset ssthresh.",
    linux="A congestion control may lower ssthresh by itself, as it leaves slow start (HyStart, Vegas, YeAH) or a "
    "reduction (Westwood), and a loss or a mark may follow at once. HyStart does so in recovery too, where PRR's "
    "window is below ssthresh; that breaks the rule.",
)


def check(trace: Trace) -> Found:
    if trace.cc.startswith("bbr"):
        return undecided("bbr has no ssthresh")
    events = Events(trace)
    fewer = (events["ssthresh"] < events.before("ssthresh")) & events.follows
    # RFC 9406: the end of slow start, at a window that is not reduced.
    fewer &= (events["state"] != OPEN) | (events["ssthresh"] < events.before("cwnd"))
    if trace.cc == "westwood":  # CA_EVENT_COMPLETE_CWR
        fewer &= events.reduces() | ~events.reduces(before=True)
    broken = np.zeros(len(events), np.bool_)
    at = np.flatnonzero(fewer)
    same = events["conn"][at[1:]] == events["conn"][at[:-1]]
    inside = events["snd_una"][at[1:]] < events["snd_nxt"][at[:-1]]
    raised = np.cumsum((events["ssthresh"] > events.before("ssthresh")) & events.follows)  # by an undo
    # RFC 5681, 4.3: a retransmission that is lost lowers it once more.
    again = (events["state"] == RECOVERY) & (events.before("state") == LOSS)
    timed = (events["state"] == LOSS) | again
    for_loss = events["state"][at[:-1]] > DISORDER
    broken[at[1:]] = same & inside & for_loss & ~timed[at[1:]] & (raised[at[1:]] == raised[at[:-1]])
    return events.where(
        broken,
        lambda event: (
            f"ssthresh falls to {events['ssthresh'][event]} within a round trip after it fell to "
            f"{events.before('ssthresh')[event]}"
        ),
    )
