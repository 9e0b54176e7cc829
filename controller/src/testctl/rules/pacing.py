# SPDX-License-Identifier: Apache-2.0
"""A paced sender sends when its rate says."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import TCP_LIMITS
from testctl.rules.core.sender import sysctl
from testctl.rules.core.spec import Found, RuleSpec
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import OPEN, Events

SPEC = RuleSpec(
    name="pacing",
    must="Where nothing but the pace holds new data back, it leaves as long after the last as that takes at the pacing "
    "rate, or up to half of it earlier.",
    source="Linux, tcp_update_skb_after_send()",
    level="Linux",
    needs=("start", "order", "tcp_events"),
    quote="take into account OS jitter",
    linux="Earlier by what the last packet left too late. A probe of the path's MTU, which is larger, leaves at once: "
    "tcp_write_xmit().",
)
_ROUNDED_NS = 2_000


def check(trace: Trace) -> Found:
    events = Events(trace)
    time, was, send = events["time_ns"], events.before("time_ns"), events.kind("send")
    rate, took, before = events["pacing_rate_bps"], time - was, events.before_each
    due = before(8_000_000_000 * (events["snd_nxt"] - events.before("snd_nxt")) / np.maximum(rate, 1))
    calm = events.follows & (events["state"] == OPEN) & (events.before("state") == OPEN)
    calm &= before(calm) & send & ~((took == 0) & before(send))
    # With space in both windows for more than was sent, which TSO does not wait to fill.
    space = events["pipe"] + 2 * (events["pipe"] - events["prior_pipe"]) <= events["cwnd"]
    held = calm & space & (rate > 0) & (events["limited_by"] == TCP_LIMITS.index("pacing"))
    nxt = events["snd_nxt"]
    held &= events.offered(held) - nxt >= 2 * (nxt - events.before("snd_nxt"))
    size = (nxt - events.before("snd_nxt")) / np.maximum(events.sent, 1)
    probe = send & (size > before(size[events.last(send)])) & bool(sysctl(trace, "tcp_mtu_probing", 0))
    calm &= ~probe & ~before(probe)
    wrong = before(held) & calm & (took > 0) & ((took > due + _ROUNDED_NS) | (took < due / 2 - _ROUNDED_NS))
    return events.where(
        wrong, lambda at: f"sends {took[at] / 1000:.1f} us after the last time; {due[at] / 1000:.1f} us are its pace"
    )
