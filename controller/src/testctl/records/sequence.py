# SPDX-License-Identifier: Apache-2.0
"""Sequence space: relative numbers that never wrap, and what was sent before.

A stream is one direction of one connection; a series is a stream as one capture saw it.
Every function takes the packets of all series in one go and works on them sorted by series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testctl.records.schema import ACK, FIN, SYN, Array, Bools, Ints

_APART = 42  # bits between series in one running maximum; no connection moves 2^41 bytes


@dataclass(frozen=True)
class SeenStreams:
    """Packets (file order within each capture) sorted by series.

    order: the sorted packets; first: position in `order` of each series' first packet;
    number: the series of each position; stream: the stream of each packet, in file order.
    """

    order: Ints
    first: Ints
    number: Ints
    stream: Ints

    @classmethod
    def of(cls, where: Array, stream: Ints, streams: int) -> SeenStreams:
        """where: capture of each packet; stream: its stream number, below `streams`."""
        key = where.astype(np.int64) * streams + stream
        small = key.astype(np.uint16) if len(key) and int(key.max()) < 1 << 16 else key  # 16 bits sort by radix
        order = np.argsort(small, kind="stable")
        new = np.diff(key[order], prepend=-1) != 0
        return cls(order, np.flatnonzero(new), np.cumsum(new) - 1, stream)


def stream_bases(time_ns: Ints, stream: Ints, streams: int, seq: Array, ack: Array, flags: Array) -> tuple[Ints, Bools]:
    """(wire number of each stream's first data byte, whether its SYN was seen).

    Without a SYN in any capture the first number seen is the base: the data's of that
    direction, or failing that the first acknowledgement of the other (stream ^ 1).
    """
    base = np.zeros(streams, np.int64)
    known = np.zeros(streams, np.bool_)
    for rows, of, value in (
        (np.flatnonzero(flags & SYN), stream, seq.astype(np.int64) + 1),
        (np.flatnonzero(flags & SYN == 0), stream, seq.astype(np.int64)),
        (np.flatnonzero(flags & ACK), stream ^ 1, ack.astype(np.int64)),
    ):
        missing = rows[~known[of[rows]]]
        if len(missing):
            missing = missing[np.argsort(time_ns[missing], kind="stable")]
            streams_found, first = np.unique(of[missing], return_index=True)
            base[streams_found] = value[missing[first]]
            known[streams_found] = True
    with_syn = np.zeros(streams, np.bool_)
    with_syn[stream[np.flatnonzero(flags & SYN)]] = True
    return base, with_syn


def unwrap(series: SeenStreams, wire: Array, base: Ints) -> Ints:
    """Wire numbers (uint32) less `base` (per packet), unwrapped along each series, in file order.

    Two packets that follow each other in a series are less than 2^31 bytes apart.
    """
    if not len(wire):
        return np.empty(0, np.int64)
    order, first = series.order, series.first
    relative = (wire.astype(np.int64) - base).astype(np.uint32)[order]
    steps = np.empty(len(wire), np.int64)
    steps[1:] = np.diff(relative).view(np.int32)
    steps[first] = relative[first].view(np.int32)
    total = np.cumsum(steps)
    before = total[first] - steps[first]
    total -= before[series.number]
    out = np.empty_like(total)
    out[order] = total
    return out


def sent_before(series: SeenStreams, seq: Ints, length: Array, flags: Array) -> Bools:
    """Whether a packet begins below the highest byte its series has seen (a partial overlap counts).

    SYN and FIN occupy one number each.  Where packets leave, this is a retransmission; where
    they arrive, a packet that was overtaken looks the same.
    """
    end = seq + length + (flags & (SYN | FIN) != 0)
    apart = series.number << _APART
    ends = np.maximum.accumulate(end[series.order] + apart)
    starts = seq[series.order] + apart
    known = np.zeros(len(seq), np.bool_)
    known[series.order[1:]] = starts[1:] < ends[:-1]
    known[series.order[series.first]] = False
    return np.asarray(known & (end > seq))
