# SPDX-License-Identifier: Apache-2.0
"""The first duplicate ACKs let two segments leave beyond the window."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN
from testctl.rules.core.sender import kernel, rack, reordered, sysctl
from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import DISORDER, Events

SPEC = RuleSpec(
    name="limited-transmit",
    must="Before a loss is detected, new data leaves until two segments more than the window are outstanding.",
    source="RFC 3042, 2",
    level="MUST",
    needs=("tcp_events",),
    quote="The amount of outstanding data would remain less than or equal to the congestion window plus 2 segments.",
    linux="With RACK (net.ipv4.tcp_recovery=1, since 4.18) a segment may leave for every segment SACKed until then. "
    "Before 6.12 one with a FIN may leave beyond that (tcp_cwnd_test()).",
)

_SEGMENTS = 3
"""Linux's net.ipv4.tcp_reordering."""


def check(trace: Trace) -> Found:
    if rack(trace):
        return undecided("losses are detected by time, until when a segment leaves for each that is SACKed")
    if sysctl(trace, "tcp_reordering", _SEGMENTS) != _SEGMENTS:
        return undecided("other than three segments may be late (net.ipv4.tcp_reordering)")
    if reordered(trace):
        return undecided("a reordering was seen, after which more segments may be late")
    if not trace.mss:
        return undecided("the host sent no data")
    events = Events(trace)
    outstanding = (events["snd_nxt"] - events["snd_una"]) // trace.mss
    calm = np.asarray(events["state"] == DISORDER)
    fin = np.isin(events["snd_nxt"], trace.end[trace.out & trace.has(FIN)]) & (kernel(trace) < (6, 12))
    # A tail loss probe, whose timer began before, adds one.
    probe = events["time_ns"] - events.before("time_ns") > 1000 * events["srtt_us"]
    return events.where(
        events.kind("send") & calm & (outstanding > events["cwnd"] + 2 + fin + probe),
        lambda at: f"{outstanding[at]} segments outstanding; the window is {events['cwnd'][at]}",
    )
