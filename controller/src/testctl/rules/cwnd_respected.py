# SPDX-License-Identifier: Apache-2.0
"""Nothing is sent beyond the congestion window."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import FIN, Bools, Ints
from testctl.rules.core.sender import TICK_NS, kernel, rto_max_ns, rto_min_ns
from testctl.rules.core.spec import Found, RuleSpec
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import Events

SPEC = RuleSpec(
    name="cwnd-respected",
    must="Segments in flight are at most the congestion window after data was sent; a tail loss probe is let pass.",
    source="RFC 5681, 3.1",
    level="MUST",
    needs=("tcp_events",),
    quote="a TCP MUST NOT send data with a sequence number higher than the sum of the highest acknowledged sequence "
    "number and the minimum of cwnd and rwnd",
    linux="The pipe without SACKed and lost segments is what counts (RFC 6675), and a FIN is always sent, "
    "before 6.12 with the data of its segment: tcp_cwnd_test().",
)


_ALMOST = 0.9
"""Of the least timeout: the timer is set by a smoothed round trip of another time."""

_BYTES = 44
"""Bits of a byte's number in a connection."""


def check(trace: Trace) -> Found:
    events = Events(trace)
    sends = events.kind("send", "retransmit")
    rto_us = events["srtt_us"] + _ALMOST * rto_min_ns(trace) // 1000
    rto_us = np.minimum(rto_us, (rto_max_ns(trace) - TICK_NS) // 1000)
    probe = (_waited_us(events, sends) >= events["srtt_us"]) | (_first_out_us(events) >= rto_us)
    probe &= events["pipe"] <= events["prior_pipe"] + 1
    fin = events["snd_nxt"] == events.before("snd_nxt") + 1
    if kernel(trace) < (6, 12):
        fin |= np.isin(events["snd_nxt"], trace.end[trace.out & trace.has(FIN)])
    broken = sends & (events["pipe"] > events["cwnd"]) & (events["pipe"] > events["prior_pipe"]) & ~probe & ~fin
    return events.where(
        broken, lambda at: f"{events['pipe'][at]} segments in flight; the window is {events['cwnd'][at]}"
    )


def _waited_us(events: Events, sends: Bools) -> Ints:
    """Since what left or was acknowledged last before each event; ACKs without progress set no timer."""
    progress = sends | (events["snd_una"] != events.before("snd_una")) | ~events.follows
    last = np.maximum.accumulate(np.where(progress, np.arange(len(events)), 0))
    before_ns = np.append(events["time_ns"][:1], events["time_ns"][last[:-1]])
    return np.asarray(np.where(events.follows, events["time_ns"] - before_ns, 0) // 1000)


def _first_out_us(events: Events) -> Ints:
    """How long ago the first outstanding segment left first: a probe does not wait for longer than its timer."""
    apart = events["conn"].astype(np.int64) << _BYTES
    sent = events.kind("send")
    left_ns = np.append(events["time_ns"][sent], np.iinfo(np.int64).max)
    first = np.searchsorted((events["snd_nxt"] + apart)[sent], events["snd_una"] + apart, side="right")
    return np.asarray((events["time_ns"] - left_ns[first]) // 1000)
