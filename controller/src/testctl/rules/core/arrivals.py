# SPDX-License-Identifier: Apache-2.0
"""When each byte that arrived came first."""

from __future__ import annotations

import numpy as np

from testctl.records.rows import search
from testctl.records.schema import Array, Ints

APART = 1 << 44
"""Between the numbers of a connection and those that belong to the next."""
NO_ROW = 1 << 40
"""The row of what never came."""


def changes(ordered: Ints) -> Ints:
    """Each number of a column once, where equal numbers follow each other."""
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]])


class Arrivals:
    """Pieces of the sequence space, which begin and end where packets do, APART between connections.

    rows   of a trace: what arrived and takes numbers, in its order
    edges  where pieces begin
    place  for each, where in `rows` the packet is with which it came first; len(rows): none
    """

    def __init__(self, rows: Ints, start: Ints, end: Ints) -> None:
        self.rows = rows
        self._group = (start + APART // 2) // APART
        begins = start[np.append(True, start[1:] != end[:-1])[: len(start)]]  # most begin where the last ended
        self.edges: Ints = changes(np.sort(np.concatenate([begins, end]), kind="stable"))
        low, high = search(self.edges, start), search(self.edges, end)
        sizes = high - low
        offsets = np.cumsum(sizes) - sizes
        pieces = np.arange(int(sizes.sum())) - np.repeat(offsets - low, sizes)
        self.place: Ints = np.full(len(self.edges), len(rows), np.int64)
        np.minimum.at(self.place, pieces, np.repeat(np.arange(len(rows)), sizes))
        self._first: Ints = np.append(rows, NO_ROW)[self.place]

    def contiguous(self) -> Ints:
        """For each of the rows the end of what had arrived without a gap, the row counted.

        All below an edge is there from the place on that is the highest of those below.
        """
        if not len(self.rows):
            return np.empty(0, np.int64)
        # `place` of the last edge of a connection stays at "never", which ends it; the next one begins anew.
        group = (self.edges + APART // 2) // APART
        firsts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        lift = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(group))) * (len(self.rows) + 1)
        needed = np.maximum.accumulate(self.place + lift) - lift
        reached = np.empty(len(self.rows), np.int64)
        turns = np.flatnonzero(np.diff(self._group, prepend=-1, append=-1))
        for edge, last, begin, stop in zip(firsts, [*firsts[1:], len(group)], turns[:-1], turns[1:], strict=True):
            at = search(needed[edge:last], np.arange(begin, stop), side="right")
            reached[begin:stop] = self.edges[edge:last][np.minimum(at, last - edge - 1)]
        return reached

    def whole(self, start: Ints, end: Ints) -> Ints:
        """The row with which all of [start, end) was there; NO_ROW: never."""
        return self._extreme(start, end, np.maximum)

    def part(self, start: Ints, end: Ints) -> Ints:
        """The row with which the first of [start, end) came; NO_ROW: none ever did."""
        return self._extreme(start, end, np.minimum)

    def _extreme(self, start: Ints, end: Ints, better: np.ufunc) -> Ints:
        """The extreme of `_first` over pieces, from a table of it over 1, 2, 4, … of them."""
        result = np.full(len(start), NO_ROW)
        if not len(self.rows) or not len(start):
            return result
        low = search(self.edges, start, side="right") - 1
        high = search(self.edges, end)
        empty = (low < 0) | (high <= low)
        level = np.log2(np.where(empty, 1, high - low)).astype(np.int64)
        table: Array = self._first
        for power in range(int(level.max()) + 1):
            width = 1 << power
            if power:
                table = better(table[: -(width // 2)], table[width // 2 :])
            here = ~empty & (level == power)
            result[here] = better(table[low[here]], table[high[here] - width])
        return result
