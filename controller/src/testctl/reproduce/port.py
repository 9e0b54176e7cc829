# SPDX-License-Identifier: Apache-2.0
"""The link that packets passed, as the switch's port model has it: rate, delay, buffer, ECN threshold, and the rest.

Only packets of both ends tell these.  Where packets wait the link sends them one after the other, so that the times
between arrivals are size / rate; with the rate the queue that each packet met is computed from the times of sending,
by the formulas of the switch's port (p4c_ebpf/runtime/port_model.h).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testctl.records.schema import CE, Array, Bools, Ints
from testctl.reproduce.wire import Way

_LEAST = 5
"""Pairs of packets that must agree on a rate."""
_SHARE = 0.2
"""Their share of all pairs that the link spread."""
_EXACT = 1e-4
"""Relative uncertainty of a rate, at least."""
_DEEPEST = 2**19 - 1
"""The largest threshold of a port, bytes."""


@dataclass(frozen=True)
class Link:
    """A direction of the path.

    rate_bps   None: nothing waited, or it can't be known; pairs: of how many pairs of packets it is
    least_ns   from the end of a packet's transmission to its arrival, by both ends' clocks, at least; None: unknown
    buffer     bytes between which it lies, (0, 0): no packet was lost by it
    threshold  likewise of marks
    dropped, marked   packets that neither explains
    late_ns    by how much packets that others overtook came later; 0: in order
    doubled    packets that arrived twice
    by_buffer, by_threshold   packets that these explain
    misfit_ns  90th percentile of how far arrivals are from the model's
    """

    rate_bps: int | None
    pairs: int
    least_ns: int | None
    buffer: tuple[int, int]
    threshold: tuple[int, int]
    dropped: Bools
    marked: Bools
    late_ns: Ints
    doubled: Bools
    by_buffer: int = 0
    by_threshold: int = 0
    misfit_ns: int = 0


def link_of(way: Way, back: Way) -> Link:
    """What the packets of a way, and of the way back, say of it."""
    none = np.zeros(len(way.seq), np.bool_)
    if not way.paired or not len(way.seq):
        rate, pairs = _clocked(way, back)
        return Link(rate, pairs, None, (0, 0), (0, 0), way.again, none, none.astype(np.int64), none)
    rate, pairs = _rate(way)
    kept = ~way.lost
    depth, leaves = queue(way.sent_ns, way.wire, kept, rate)
    wait = (way.got_ns - leaves)[kept]
    least = int(wait.min()) if len(wait) else None
    late = _late(way, leaves, least or 0)
    buffer, full = _buffer(depth + way.wire, way.lost & way.data) if rate else ((0, 0), none)
    able, ce = kept & (way.ecn != 0) & (way.ecn != CE), kept & (way.got_ecn == CE) & (way.ecn != CE)
    threshold = _threshold(depth, able & ~ce, ce) if rate else (0, 0)
    explained = ce if threshold[1] else none
    misfit = int(np.percentile(np.abs(wait - np.median(wait)), 90)) if len(wait) else 0
    return Link(
        rate, pairs, least, buffer, threshold, way.lost & ~full, ce & ~explained, late, way.copies > 1,
        int(full.sum()), int(explained.sum()), misfit,
    )  # fmt: skip


def _rate(way: Way) -> tuple[int | None, int]:
    """(bit/s, pairs of packets): the most frequent size / time between the arrivals of two packets that came further
    apart than they were sent, the second one late by half of that time at least."""
    rows = np.flatnonzero(way.got_ns >= 0)
    sent, got = np.diff(way.sent_ns[rows]), np.diff(way.got_ns[rows])
    took = way.got_ns[rows] - way.sent_ns[rows]
    waited = 2 * (took - took.min(initial=2**62))[1:] >= got
    spread = (got > sent) & (got > 1) & (way.length[rows[1:]] > 0) & waited
    return _most(way.wire[rows[1:]][spread] * 8e9 / got[spread])


def _clocked(way: Way, back: Way) -> tuple[int | None, int]:
    """The same where one end alone was captured: by the times of ACKs, or of arrivals."""
    data = way.data & (way.got_ns >= 0)
    if data.any():
        apart = np.diff(way.got_ns[data])
        return _most(way.wire[data][1:][apart > 1] * 8e9 / apart[apart > 1])
    if not way.data.any():
        return None, 0
    whole = float(way.wire[way.data].sum() / way.length[way.data].sum())
    rows = np.flatnonzero(~back.data & (back.got_ns >= 0) & (back.flow == way.flow[0]) & (back.conn == way.conn[0]))
    apart, newly = np.diff(back.got_ns[rows]), np.diff(back.ack[rows])
    moved = (apart > 1) & (newly > 0)
    return _most(newly[moved] * whole * 8e9 / apart[moved])


def _most(rates: Array) -> tuple[int | None, int]:
    """(the most frequent rate, how often), if enough are alike."""
    if len(rates) < _LEAST:
        return None, 0
    places = np.floor(np.log(rates) * 100)
    values, counts = np.unique(places, return_counts=True)
    most = values[counts.argmax()]
    alike = np.sort(rates[np.abs(places - most) <= 1])
    if len(alike) < max(_LEAST, _SHARE * len(rates)):
        return None, 0
    middle = float(np.median(alike))
    off = max(_EXACT, float(np.percentile(alike, 75) - np.percentile(alike, 25)) / middle / np.sqrt(len(alike)))
    return roundest(int(middle * (1 - off)), int(middle * (1 + off))), len(alike)


def queue(sent_ns: Ints, size: Ints, kept: Bools, rate: int | None) -> tuple[Ints, Ints]:
    """(bytes that waited when each packet came, when its last bit was sent), with the packets that were not kept left
    out of the queue; exact in nanobits."""
    if not rate:
        return np.zeros(len(size), np.int64), sent_ns
    depth, leaves = np.zeros(len(size), np.int64), np.array(sent_ns)
    backlog, since = 0, 0
    for row, (now, length, stays) in enumerate(zip(sent_ns.tolist(), size.tolist(), kept.tolist(), strict=True)):
        backlog = max(0, backlog - (now - since) * rate)
        since = now
        depth[row] = -(-backlog // 8_000_000_000)
        if stays:
            backlog += length * 8_000_000_000
        leaves[row] = now - (-backlog // rate)
    return depth, leaves


def _buffer(needed: Ints, lost: Bools) -> tuple[tuple[int, int], Bools]:
    """(bytes between which the buffer lies, the losses that it explains): the port drops what does not fit."""
    most = int(needed[~lost].max(initial=0))
    full = lost & (needed > most)
    if full.sum() < 2 and full.sum() < lost.sum():
        return (0, 0), np.zeros(len(lost), np.bool_)
    return (most, int(needed[full].min()) - 1) if full.any() else (0, 0), full


def _threshold(depth: Ints, unmarked: Bools, marked: Bools) -> tuple[int, int]:
    """Bytes between which the threshold lies, from which on the port marks; (0, 0): none explains all marks."""
    if not marked.any():
        return 0, 0
    low, high = int(depth[unmarked].max(initial=-1)) + 1, min(int(depth[marked].min()), _DEEPEST)
    return (low, high) if low <= high else (0, 0)


def _late(way: Way, leaves: Ints, least: int) -> Ints:
    """By how much (ns) each packet came later than the link explains, of those that a later one overtook."""
    late = np.zeros(len(way.seq), np.int64)
    rows = np.flatnonzero(way.got_ns >= 0)
    if len(rows):
        behind = np.minimum.accumulate(way.got_ns[rows][::-1])[::-1]
        overtaken = rows[:-1][way.got_ns[rows[:-1]] > behind[1:]]
        late[overtaken] = np.maximum(way.got_ns[overtaken] - leaves[overtaken] - least, 0)
    return late


def roundest(low: int, high: int) -> int:
    """The number with the fewest digits between two, the nearest to their middle of several."""
    if low >= high:
        return low
    unit = 10 ** len(str(high))
    while unit > 1 and (high // unit) * unit < max(low, 1):
        unit //= 10
    middle = (low + high) / 2
    fitting = range(-(-max(low, 1) // unit) * unit, high + 1, unit)
    for half in (5 * unit,):  # 5 and 50 are as round as any
        fives = [number for number in fitting if number % half == 0]
        if fives:
            return min(fives, key=lambda number: abs(number - middle))
    return min(fitting, key=lambda number: abs(number - middle))
