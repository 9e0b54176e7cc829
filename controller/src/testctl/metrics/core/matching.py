# SPDX-License-Identifier: Apache-2.0
"""Matches departures with their arrivals, over losses, retransmissions and merging.

A departure matches the arrival that covers its last byte.  Bytes that left once and arrived once
(nearly all) need one search.  For bytes that left k times and arrived k times the n-th departure
is the n-th arrival.  Otherwise some were lost: each departure takes the earliest later arrival
with its own TCP timestamp, or failing that one whose timestamp is no departure's; of departures
that take the same arrival of one byte the latest keeps it, and the others were lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testctl.metrics.core.clocks import apart
from testctl.metrics.core.memo import once
from testctl.metrics.core.native import walks
from testctl.metrics.core.view import FlowView, Rows
from testctl.records.schema import Array, Bools, Ints

_PAIRS_AT_ONCE = 5_000_000


@dataclass(frozen=True)
class Wire:
    """Departures packet by packet: a record of merged packets is as many entries.

    row: position in FlowView.sent; start, end: bytes on the flow's axis; arrival: position in
    FlowView.arrived, -1 when it never arrived; once: its last byte left only once.
    """

    row: Ints
    start: Ints
    end: Ints
    arrival: Array
    once: Bools


@once
def wire(flow: FlowView) -> Wire:
    """The departures of a flow and their arrivals, made once."""
    sent, arrived = flow.sent, flow.arrived
    if flow.records.in_parts:
        arrived = Rows(flow.records, arrived.index)  # its columns are of no use later
    row, start, end = _split(sent)
    sent.release()
    once = _alone(start, end)
    if not len(arrived):
        return Wire(row, start, end, np.full(len(row), -1, np.int32), once)
    single = len(row) == len(sent)
    time_ns = sent["time_ns"] if single else sent["time_ns"][row]
    into_start, into_end = arrived.start, arrived.end
    arrived.release()
    into = (into_start, into_end, _latest(flow, arrived), _Stamps(arrived))
    arrival = match((start, end, time_ns, _Stamps(sent, None if single else row)), into, once)
    sent.release()
    return Wire(row, start, end, arrival, once)


def _latest(flow: FlowView, arrived: Rows) -> Ints:
    """The arrivals by the sender's clock, as late as they can have been: none may be before its departure."""
    clocks, time_ns = apart(flow), arrived["time_ns"]
    if clocks is None or clocks.error_ns == float("inf"):
        return np.asarray(time_ns)
    return np.asarray(time_ns - clocks.offset_ns + int(clocks.error_ns))


def _split(sent: Rows) -> tuple[Ints, Ints, Ints]:
    """(row, start, end) of every packet on the wire; the last of a merged record may be shorter."""
    segs, start, end = sent["segs"], sent.start, sent.end
    if not len(sent) or int(segs.max()) == 1:
        return np.arange(len(sent), dtype=np.int32), start, end
    row = np.repeat(np.arange(len(sent)), segs)
    first = np.cumsum(segs) - segs
    ordinal = np.arange(len(row)) - first[row]
    mss = -(-sent["length"] // segs)[row].astype(np.int64)
    begins = np.minimum(start[row] + ordinal * mss, end[row])
    return row, begins, np.minimum(begins + mss, end[row])


def _disjoint(start: Ints, end: Ints) -> bool:
    """Whether the intervals, in their order, do not overlap."""
    return len(start) < 2 or bool((start[1:] >= end[:-1]).all())


def _alone(start: Ints, end: Ints) -> Bools:
    """Whether the last byte of each is in no other interval."""
    return np.ones(len(start), np.bool_) if _disjoint(start, end) else _covering(start, end, end - 1) == 1


def _covering(start: Ints, end: Ints, byte: Ints) -> Array:
    """How many intervals cover each byte.  They are nearly in order: a stable sort is the quick one."""
    begins, ends = np.sort(start, kind="stable"), np.sort(end, kind="stable")
    return walks().covering(begins, ends, byte)


@dataclass(frozen=True)
class _Stamps:
    """TCP timestamps of packets; few are read; row: of each packet, None where they are the rows."""

    rows: Rows
    row: Ints | None = None

    def __getitem__(self, at: Ints) -> Array:
        return self.rows.at("tsval", at if self.row is None else self.row[at])


Columns = tuple[Ints, Ints, Ints, Array | _Stamps]
"""start, end, time_ns, tsval"""


def match(sent: Columns, arrived: Columns, once: Bools | None = None) -> Array:
    """The position in `arrived` of each of `sent`, -1 for none; both in order of time.

    once: whose last byte is in no other of `sent`
    """
    start, end, time_ns, _ = sent
    into_start, into_end, into_time, _ = arrived
    if not len(into_end):
        return np.full(len(end), -1, np.int32)
    ordered = _disjoint(into_start, into_end)
    by_end = None if ordered else np.argsort(into_end, kind="stable")
    ends = into_end if by_end is None else into_end[by_end]
    result = walks().match((end, time_ns), (into_start, ends, into_time), by_end)
    once = _alone(start, end) if once is None else once
    if not once.all():
        result[~once] = -1
    if not ordered:
        result[_covering(into_start, into_end, end - 1) != 1] = -1
    rest = np.flatnonzero(result < 0)
    if len(rest):
        rest = rest[_covering(into_start, into_end, end[rest] - 1) > 0]
    if len(rest):
        _match_repeated(result, rest, sent, arrived)
    return result


def _match_repeated(result: Ints, rest: Ints, sent: Columns, arrived: Columns) -> None:
    """Fill in `result` for bytes that left or arrived more than once."""
    into_start, into_end = arrived[0], arrived[1]
    by_start = np.argsort(into_start, kind="stable")
    starts = into_start[by_start]
    longest = int((into_end - into_start).max())
    byte = sent[1][rest] - 1
    low = np.searchsorted(starts, byte - longest, side="right")
    high = np.searchsorted(starts, byte, side="right")
    # All departures of one byte must be seen together: chunks end between bytes.
    order = np.argsort(byte, kind="stable")
    rest, byte, low, high = rest[order], byte[order], low[order], high[order]
    cost = np.cumsum(high - low)
    begin = 0
    while begin < len(rest):
        spent = cost[begin - 1] if begin else 0
        stop = int(np.searchsorted(cost, spent + _PAIRS_AT_ONCE, side="right"))
        stop = max(stop, begin + 1)
        stop = int(np.searchsorted(byte, byte[stop - 1], side="right"))
        part = slice(begin, stop)
        _match_chunk(result, rest[part], byte[part], by_start, low[part], high[part], sent, arrived)
        begin = stop


def _match_chunk(
    result: Ints, rest: Ints, byte: Ints, by_start: Ints, low: Ints, high: Ints, sent: Columns, arrived: Columns
) -> None:
    count = high - low
    pair = np.repeat(np.arange(len(rest)), count)
    offset = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
    into = by_start[low[pair] + offset]
    covers = arrived[1][into] > byte[pair]
    pair, into = pair[covers], into[covers]
    # In order of byte, then departure; the arrivals of each in order of time (position is time).
    order = np.lexsort((into, pair))
    pair, into = pair[order], into[order]
    arrivals = np.bincount(pair, minlength=len(rest))
    first = np.cumsum(arrivals) - arrivals
    _, begin, of_byte, departures = np.unique(byte, return_index=True, return_inverse=True, return_counts=True)
    rank = np.arange(len(rest)) - begin[of_byte]
    equal = departures[of_byte] == arrivals
    result[rest[equal]] = into[first[equal] + rank[equal]]

    later = ~equal[pair] & (arrived[2][into] >= sent[2][rest[pair]])
    same = later & (arrived[3][into] == sent[3][rest[pair]])
    chosen = np.full(len(rest), -1, np.int64)
    _choose(chosen, pair[same], into[same])
    claimed = of_byte[pair] * len(arrived[0]) + into
    _choose(chosen, *(side[later & ~np.isin(claimed, claimed[same])] for side in (pair, into)))
    unsure = np.flatnonzero(~equal & (chosen >= 0))
    claim = np.lexsort((unsure, chosen[unsure], byte[unsure]))
    unsure = unsure[claim]
    last = np.ones(len(unsure), np.bool_)
    last[:-1] = (chosen[unsure][1:] != chosen[unsure][:-1]) | (byte[unsure][1:] != byte[unsure][:-1])
    result[rest[unsure[last]]] = chosen[unsure[last]]


def _choose(chosen: Ints, pair: Ints, into: Ints) -> None:
    """Give every departure without an arrival the first of its pairs."""
    some, first = np.unique(pair, return_index=True)
    free = chosen[some] < 0
    chosen[some[free]] = into[first[free]]
