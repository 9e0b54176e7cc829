# SPDX-License-Identifier: Apache-2.0
"""The SACK blocks that a host sent, next to what had arrived at it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testctl.records.schema import ACK, RST, SYN, Array, Bools, Ints
from testctl.rules.core.trace import Trace

_BLOCKS = 4
NO_ROW = 1 << 40
"""The row of what never came."""


@dataclass
class Sacks:
    """Blocks of the ACKs that leave, in their order.

    row     of the trace: the ACK
    number  the block's place in its option, from 0
    """

    trace: Trace
    row: Ints
    number: Ints
    start: Ints
    end: Ints

    @cached_property
    def duplicate(self) -> Bools:
        """D-SACK blocks (RFC 2883, 4): the first of an option if below the ACK number or within the second block."""
        trace, row = self.trace, self.row
        second = (trace["sack2_start"][row], trace["sack2_end"][row])
        inside = (second[0] >= 0) & (self.start >= second[0]) & (self.end <= second[1])
        return np.asarray((self.number == 0) & ((self.start < trace["ack"][row]) | inside))


def blocks(trace: Trace) -> Sacks:
    """All blocks that the host sent."""
    acks = trace.out & trace.has(ACK) & ~trace.has(SYN) & ~trace.has(RST)
    parts = []
    for number in range(_BLOCKS):
        rows = np.flatnonzero(acks & (trace[f"sack{number + 1}_start"] >= 0))
        edges = (trace[f"sack{number + 1}_{edge}"][rows] for edge in ("start", "end"))
        parts.append(np.stack([rows, np.full(len(rows), number), *edges]))
    all_blocks = np.concatenate(parts, axis=1)
    return Sacks(trace, *all_blocks[:, np.argsort(all_blocks[0], kind="stable")])


def in_use(trace: Trace) -> Bools:
    """Rows of connections in which either end sent a block: both permitted SACK."""
    sacked = trace["sack1_start"] >= 0
    return np.asarray((trace.latest(sacked) >= 0) | sacked | (trace.following(sacked) >= 0))


class Arrivals:
    """When each byte arrived first."""

    def __init__(self, trace: Trace) -> None:
        self.rows: Ints = np.flatnonzero(~trace.out & (trace.end > trace["seq"]))
        self.trace = trace
        if len(self.rows):
            self.edges, place = trace.pieces(self.rows)
            self.first = np.append(self.rows, NO_ROW)[place]

    def whole(self, at: Ints, start: Ints, end: Ints) -> Ints:
        """The row with which all of [start, end) was there, in the connection of row `at`; NO_ROW: never."""
        return self._extreme(at, start, end, np.maximum)

    def part(self, at: Ints, start: Ints, end: Ints) -> Ints:
        """The row with which the first of [start, end) came; NO_ROW: none ever did."""
        return self._extreme(at, start, end, np.minimum)

    def _extreme(self, at: Ints, start: Ints, end: Ints, better: np.ufunc) -> Ints:
        """The extreme of `first` over pieces, from a table of it over 1, 2, 4, … of them."""
        if not len(self.rows) or not len(at):
            return np.full(len(at), NO_ROW)
        low = np.searchsorted(self.edges, start + self.trace.apart[at], side="right") - 1
        high = np.searchsorted(self.edges, end + self.trace.apart[at])
        empty = (low < 0) | (high <= low)
        size = np.where(empty, 1, high - low)
        level = np.log2(size).astype(np.int64)
        result = np.full(len(at), NO_ROW)
        table: Array = self.first
        for power in range(int(level.max()) + 1):
            width = 1 << power
            if power:
                table = better(table[: -(width // 2)], table[width // 2 :])
            here = ~empty & (level == power)
            result[here] = better(table[low[here]], table[high[here] - width])
        return result

    @cached_property
    def repeated(self) -> Bools:
        """Rows of the trace whose payload had arrived before, all of it."""
        trace, mask = self.trace, np.zeros(len(self.trace), np.bool_)
        rows = np.flatnonzero(~trace.out & trace.data)
        seq = trace["seq"][rows]
        mask[rows] = self.whole(rows, seq, seq + trace["length"][rows]) < rows
        return mask
