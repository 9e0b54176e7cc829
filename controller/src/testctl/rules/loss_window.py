# SPDX-License-Identifier: Apache-2.0
"""A timeout leaves a window of one segment."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN
from testctl.rules.core.sender import TICK_NS, timeouts
from testctl.rules.core.spec import SENDER, Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="loss-window",
    must="After a timeout a single segment is sent before anything arrives.",
    source="RFC 5681, 3.1",
    level="MUST",
    needs=SENDER,
    only_if=("timer",),
    quote="upon a timeout (as specified in [RFC2988]) cwnd MUST be set to no more than the loss window, LW, which "
    "equals 1 full-sized segment",
    linux="A FIN without data is sent whatever the window is: tcp_cwnd_test().",
)


def check(trace: Trace) -> Found:
    if trace.cc.startswith("bbr") and not int(trace.settings.get("net.ipv4.tcp_sack", 1)):
        return undecided("without SACK what BBR's pace held back looks like a timeout")
    board = trace.board
    time = trace["time_ns"]
    at = np.flatnonzero(timeouts(trace))
    stop = trace.following(~trace.out, timeouts(trace))[at]
    soon = np.zeros(len(trace), np.bool_)
    for begin, end in zip(at.tolist(), np.where(stop < 0, len(trace), stop).tolist(), strict=True):
        soon[begin + 1 : end] = True
    soon &= board.sent & ~(trace.has(FIN) & ~trace.data)
    last = trace.latest(timeouts(trace), soon)
    rows = np.flatnonzero(soon)
    alone = last[rows] > trace.latest(~trace.out, soon)[rows]
    soon[rows] = alone & (last[rows] >= 0) & (time[rows] - time[last[rows]] < TICK_NS)
    several = timeouts(trace) & (trace["segs"] > 1)
    return where(
        (soon | several) & trace.from_syn,
        lambda row: f"sends {trace['seq'][row]} to {trace.end[row]}, more than a segment, after a timeout",
        np.where(soon, last, -1),
    )
