# SPDX-License-Identifier: Apache-2.0
"""No small segment while another is unacknowledged."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN
from testctl.rules.core.sender import beyond, full_segment
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="nagle",
    must="Where Nagle's algorithm is on, no small segment is sent while a small segment is unacknowledged.",
    source="RFC 9293, 3.7.4",
    level="SHOULD",
    needs=("order", "mtu"),
    quote="If there is unacknowledged data (i.e., SND.NXT > SND.UNA), then the sending TCP endpoint buffers all user "
    "data until the outstanding data has been acknowledged or until the TCP endpoint can send a full-sized segment",
    linux="It waits for small segments alone, not for full-sized ones (Minshall's variant, tcp_minshall_check(), since "
    "2.4). Nothing waits that has data queued behind it, such as what a window had cut (tcp_write_xmit()), nor the "
    "FIN, nor a loss probe with new data (since 3.10, tcp_send_loss_probe()), nor new data after a timeout's first ACK "
    "(F-RTO, RFC 5682; tcp_xmit_recovery()).",
)


def check(trace: Trace) -> Found:
    if int(trace.settings.get("net.ipv4.tcp_mtu_probing", 0)):
        return undecided("the segment size changes (net.ipv4.tcp_mtu_probing)")
    if (nodelay := trace.option("nodelay", None)) is None:
        return undecided("the generator does not say whether Nagle's algorithm is on")
    if nodelay:
        return Found()
    space = full_segment(trace)
    fresh = trace.out & trace.data & (trace["seq"] >= trace.nxt)
    at = np.flatnonzero(fresh)
    part = trace["length"][at] % space[at]
    at, part = at[part > 0], part[part > 0]
    options = sum((trace[f"sack{number}_start"][at] >= 0) * 8 for number in range(1, 5))
    small = trace.sparse(at, part + options + 4 * (options > 0) < space[at])
    if not small.any():
        return NOTHING
    end = trace["seq"] + trace["length"]
    waiting = trace.highest(end, small) > trace.una
    # Nothing was queued behind it if nothing new left before it was acknowledged, though the window had space.
    after = trace.following(fresh)
    last = ((after < 0) | (trace.una[after] >= end)) & (trace.edge - end >= space)
    before = trace.latest(trace.out & trace.data)
    answers_timeout = (before >= 0) & trace.board.again[before]
    return where(
        small & waiting & last & ~trace.has(FIN) & ~answers_timeout & ~beyond(trace),
        lambda row: (
            f"sends {trace['length'][row]} bytes, which end in a small segment, while that up to "
            f"{trace.highest(end, small)[row]} is unacknowledged"
        ),
        lambda: trace.latest(small),
    )
