# SPDX-License-Identifier: Apache-2.0
"""What rules about congestion windows share: segments in flight, and events of the kernel's trace with their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testctl.records.rows import search
from testctl.records.schema import TCP_EVENT_NAMES, Array, Bools, Ints
from testctl.rules.core.spec import KEPT, Found, Violation
from testctl.rules.core.trace import Trace, once

INITIAL = 10
"""RFC 6928 and Linux's TCP_INIT_CWND, segments."""
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)


def initial_window(trace: Trace) -> int:
    """The initial window of the host's routes, segments."""
    return int(trace.settings.get("initcwnd", INITIAL))


@once
def new_data(trace: Trace) -> Bools:
    """Data that is sent for the first time."""
    return np.asarray(trace.board.sent & trace.data & ~trace.board.again)


@once
def quiet_ns(trace: Trace) -> Ints:
    """How long before each row the last packet of its connection was sent or arrived."""
    time = trace["time_ns"]
    return np.asarray(time - time[np.maximum(np.arange(len(trace)) - 1, trace.first)])


@once
def segments_sent(trace: Trace) -> Ints:
    """How many segments of new data the connection had sent, the row's counted."""
    return np.asarray(trace.count(trace["segs"], new_data(trace) & trace.from_syn) + trace["segs"])


def segments(trace: Trace, numbers: Ints, at: Ints) -> Ints:
    """How many of the segments that the host ever sent begin below these numbers, for the connections of some rows."""
    rows = np.flatnonzero(new_data(trace))
    if not len(rows):
        return np.zeros(len(at), np.int64)
    starts, lift = trace["seq"][rows] + trace.apart[rows], trace.apart[at]
    total = np.append(0, np.cumsum(trace["segs"][rows]))
    at = search(starts, numbers + lift)  # packets that begin below
    last = rows[np.maximum(at - 1, 0)]
    size = -(-trace["length"][last] // np.maximum(trace["segs"][last], 1))
    inside = -(-(numbers + lift - starts[np.maximum(at - 1, 0)]) // np.maximum(size, 1))
    counted = total[np.maximum(at - 1, 0)] + np.minimum(inside, trace["segs"][last])
    base = total[search(starts, lift + np.int64(-2))]
    return np.asarray(np.maximum(np.where(at > 0, counted, 0) - base, 0))


@dataclass
class Events:
    """The kernel's trace of the host, in the order of `trace.events`; `at` masks and Ints are of events."""

    trace: Trace

    def __getitem__(self, name: str) -> Array:
        return self.trace.events[name]

    def __len__(self) -> int:
        return len(self["conn"])

    def kind(self, *names: str) -> Bools:
        return np.isin(self["event"], [TCP_EVENT_NAMES.index(name) for name in names])

    @cached_property
    def follows(self) -> Bools:
        """Events that have another of their connection before them."""
        conn = self["conn"]
        return np.append(np.zeros(min(len(conn), 1), np.bool_), conn[1:] == conn[:-1])

    def before(self, name: str) -> Ints:
        """The value after the event before, in the same connection; without any the event's own."""
        values = self[name]
        return np.where(self.follows, np.append(values[:1], values[:-1]), values)

    def row(self, event: int) -> int:
        """The row of the packet that an event is about: the last up to its time."""
        trace = self.trace
        rows = np.flatnonzero(trace["conn"] == self["conn"][event])
        at = int(np.searchsorted(trace["time_ns"][rows], self["time_ns"][event] + 1000, side="right"))
        return int(rows[max(at - 1, 0)])

    def where(self, broken: Bools, text: Callable[[int], str]) -> Found:
        """A violation at each event of the mask."""
        at = np.flatnonzero(broken & np.isin(self["conn"], self.trace["conn"]))
        return Found(len(at), tuple(Violation(self.row(event), text(event)) for event in at[:KEPT].tolist()))
