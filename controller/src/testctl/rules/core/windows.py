# SPDX-License-Identifier: Apache-2.0
"""What rules about congestion windows share: segments in flight, and events of the kernel's trace with their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testctl.records.rows import search
from testctl.records.schema import ACK, TCP_EVENT_NAMES, Array, Bools, Ints, codes_of, numbers_of
from testctl.rules.core.spec import KEPT, Found, Violation
from testctl.rules.core.trace import Trace, once

INITIAL = 10
"""RFC 6928 and Linux's TCP_INIT_CWND, segments."""
_APART = np.int64(1) << 46
"""More ns than a run has."""
NO_SSTHRESH = 1 << 30
"""Segments: before the first loss ssthresh is higher (TCP_INFINITE_SSTHRESH)."""
_OF_LINUX = (
    "reno", "cubic", "dctcp", "bic", "htcp", "highspeed", "hybla", "illinois", "lp", "nv", "scalable", "vegas", "veno",
    "westwood", "yeah",
)  # fmt: skip
_OTHER_WAYS = ("rfc6675", "halving", "ub", "crb", "prr")
"""What variants of the testbed do in recovery instead: the part of their names after the last _."""
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
_ESTABLISHED = 1
HYBLA_RTT0_NS = 25_000_000
"""Hybla grows as Reno does over this RTT."""


def initial_window(trace: Trace) -> int:
    """The initial window of the host's routes, segments."""
    return int(trace.settings.get("initcwnd", INITIAL))


def first_window(trace: Trace) -> int:
    """Segments that connections begin with: the initial window, or hybla's, larger on long paths
    (hybla_init())."""
    if trace.cc != "hybla":
        return initial_window(trace)
    rtt = trace.board.samples[trace.una < 0].max(initial=0) + trace.at_once_ns
    return max(initial_window(trace), int(rtt) // HYBLA_RTT0_NS)


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


def reduced_by_the_core(cc: str) -> bool:
    """Whether a congestion control leaves the window to tcp_cwnd_reduction() while it is reduced."""
    return cc.partition("_")[0] in _OF_LINUX and cc.rpartition("_")[2] not in _OTHER_WAYS


def last_rows(trace: Trace, conn: Ints, time_ns: Ints) -> Ints:
    """The last row of a connection up to a time, for each of some of them."""
    keys = trace["conn"] * _APART + trace["time_ns"]
    return np.maximum(np.searchsorted(keys, conn * _APART + time_ns, side="right") - 1, 0)


def arrived_by(trace: Trace, rows: Ints) -> Ints:
    """For each of some rows itself if it arrived, else the last that had arrived in its connection before it."""
    return np.where(trace.out[rows], np.maximum(trace.latest(~trace.out)[rows], 0), rows)


def samples(trace: Trace, *names: str, states: tuple[int, ...] = (_ESTABLISHED,)) -> dict[str, Ints]:
    """Columns of the host's samples of tcp_info of connections in these states, and "row": the last packet's up to
    then."""
    table = trace.records.tcp_info
    (flow, flows), (place, places) = codes_of(table, "flow"), codes_of(table, "where")
    of, at = [*flows, trace.flow].index(trace.flow), [*places, trace.host].index(trace.host)
    own = np.flatnonzero((flow == of) & (place == at))
    columns = {name: numbers_of(table, name)[own].astype(np.int64) for name in ("conn", "time_ns", "state", *names)}
    judged = np.isin(columns["state"], states) & np.isin(columns["conn"], trace["conn"])
    columns = {name: values[judged] for name, values in columns.items()}
    return columns | {"row": last_rows(trace, columns["conn"], columns["time_ns"])}


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

    @cached_property
    def alone(self) -> tuple[Ints, Ints]:
        """(ACKs without another in their instant, for each the last row of its connection up to then), where TCP had
        received all ACKs that the host had: a busy host has more."""
        trace, conn, time, acks = self.trace, self["conn"], self["time_ns"], np.flatnonzero(self.kind("ack"))
        apart = (conn[acks[1:]] != conn[acks[:-1]]) | (time[acks[1:]] != time[acks[:-1]])
        at = acks[np.append(True, apart)[: len(acks)] & np.append(apart, True)[: len(acks)]]
        at = at[np.isin(conn[at], trace["conn"])]
        rows = last_rows(trace, conn[at], time[at])
        una = trace.highest(trace["ack"], ~trace.out & trace.has(ACK), inclusive=True)
        came = trace.count(trace.board.acks.astype(np.int64), trace.board.acks)
        several = came[rows] + trace.board.acks[rows] - came[trace.instant[rows]] > 1  # no event with nothing in flight
        received = (una[rows] == self["snd_una"][at]) & ~several
        return at[received], rows[received]

    def offered(self, of: Bools) -> Ints:
        """For events of the mask the right edge of the window that the peer offered last; 0 for all others."""
        trace, at = self.trace, np.flatnonzero(of & np.isin(self["conn"], self.trace["conn"]))
        return self.sparse(at, trace.limit[arrived_by(trace, last_rows(trace, self["conn"][at], self["time_ns"][at]))])

    @cached_property
    def delivered(self) -> Ints:
        """Segments that an ACK delivered; 0 of other events."""
        return np.where(self.kind("ack"), self["delivered"] - self.before("delivered"), 0)

    @cached_property
    def sent(self) -> Ints:
        """Segments that a transmission put in flight; 0 of other events."""
        return np.where(self.kind("ack"), 0, np.maximum(self["pipe"] - self["prior_pipe"], 0))

    def reduces(self, *, before: bool = False) -> Bools:
        """Whether the window is being reduced, for a loss or marks, after each event, or before it."""
        states = self.before("state") if before else self["state"]
        return np.isin(states, (CWR, RECOVERY)) & (self.follows | (not before))

    @cached_property
    def begins(self) -> Bools:
        """Events that begin a reduction where there was none."""
        return np.asarray(self.reduces() & ~self.reduces(before=True))

    @cached_property
    def dropped(self) -> Bools:
        """Events as whose state may change because the host's own queue dropped what was sent."""
        return np.asarray(self.kind("send") | (self["snd_nxt"] < self.before("snd_nxt")))

    @cached_property
    def reduction(self) -> Ints:
        """For each event the one with which the last reduction began."""
        return self.last(self.begins)

    @cached_property
    def recovery_point(self) -> Ints:
        """For each event what had been sent when the last reduction began."""
        return self.before("snd_nxt")[self.reduction]

    def last(self, of: Bools) -> Ints:
        """For each event the last of the mask up to it, in any connection; 0 without any."""
        return np.asarray(np.maximum.accumulate(np.where(of, np.arange(len(self)), 0)))

    def before_each(self, values: Array) -> Array:
        """The value of the event before, in any connection."""
        return np.append(values[:1], values[:-1])

    def same(self, others: Ints) -> Bools:
        """Whether each event is of the same connection as its other one."""
        return np.asarray(self["conn"] == self["conn"][others])

    def sparse(self, at: Ints, values: Array) -> Array:
        """A column of these values at some events, and 0 at all others."""
        column = np.zeros(len(self), values.dtype)
        column[at] = values
        return column

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
