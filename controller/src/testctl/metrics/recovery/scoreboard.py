# SPDX-License-Identifier: Apache-2.0
"""The state of the bytes above the cumulative ACK by SACK blocks, and the pipe (RFC 6675).

Numbers are bytes; an interval is [start, end).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

DUP_THRESH = 3


class Scoreboard:
    """SACKed bytes above the cumulative ACK: disjoint intervals, ascending; `total` of them."""

    __slots__ = ("ends", "starts", "total")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.total = 0

    def add(self, start: int, end: int) -> int:
        """Take in a block; returns how many of its bytes are new."""
        first = bisect_left(self.ends, start)
        if first < len(self.ends) and self.starts[first] <= start and end <= self.ends[first]:
            return 0
        last = bisect_right(self.starts, end)
        if first == last:
            self.starts.insert(first, start)
            self.ends.insert(first, end)
            self.total += end - start
            return end - start
        low, high = min(start, self.starts[first]), max(end, self.ends[last - 1])
        known = sum(self.ends[first:last]) - sum(self.starts[first:last])
        self.starts[first:last] = [low]
        self.ends[first:last] = [high]
        self.total += high - low - known
        return high - low - known

    def advance(self, una: int) -> None:
        """Everything below `una` is acknowledged."""
        gone = bisect_right(self.ends, una)
        if gone:
            self.total -= sum(self.ends[:gone]) - sum(self.starts[:gone])
            del self.starts[:gone], self.ends[:gone]
        if self.starts and self.starts[0] < una:
            self.total -= una - self.starts[0]
            self.starts[0] = una

    def below(self, limit: int) -> int:
        """SACKed bytes below `limit`."""
        count = bisect_left(self.starts, limit)
        whole = sum(self.ends[:count]) - sum(self.starts[:count])
        return whole - max(self.ends[count - 1] - limit, 0) if count else 0

    def lost_edge(self, mss: int) -> tuple[int, int]:
        """(edge below which every byte that is not SACKed is lost, SACKed bytes above it): RFC 6675, IsLost().

        Three separate blocks above a byte, or more than two segments' bytes, make it lost.  (0, 0): none is.
        """
        above = 0
        for blocks, (start, end) in enumerate(zip(reversed(self.starts), reversed(self.ends), strict=True), 1):
            above += end - start
            if blocks >= DUP_THRESH or above > (DUP_THRESH - 1) * mss:
                return start, above
        return 0, 0

    def pipe(self, una: int, nxt: int, mss: int, high_rxt: int, lost_below: int = 0) -> int:
        """SetPipe() of RFC 6675, section 4: outstanding, less SACKed and lost, and retransmitted bytes once more.

        high_rxt     HighRxt: the byte behind the highest retransmitted one
        lost_below   bytes below it are lost whatever was SACKed (after a retransmission timeout, section 5.1)
        What was retransmitted counts as lost too: a sender that marks by time (RACK) does not wait for three
        segments, and RFC 6675 alone would count its retransmissions twice.
        """
        lost_below = max(lost_below, high_rxt)
        edge, above = self.lost_edge(mss)
        flight = nxt - una - self.total
        if lost_below > edge:
            edge, above = lost_below, self.total - self.below(lost_below)
        lost = edge - una - (self.total - above) if edge > una else 0
        again = high_rxt - una - self.below(high_rxt) if high_rxt > una else 0
        return flight - lost + again
