# SPDX-License-Identifier: Apache-2.0
"""What a sender sent on each ACK: N a new segment, R a retransmission, a number before it for several, "." nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testctl.metrics.recovery.trace_part import Part
from testctl.records.schema import Ints


@dataclass(frozen=True)
class Answers:
    """acks: events; new, again: packets that left after each and before the next."""

    acks: Ints
    new: Ints
    again: Ints

    @property
    def total(self) -> Ints:
        return np.asarray(self.new + self.again)

    def part(self, first: int, last: int) -> Answers:
        """The answers to the ACKs first <= event < last."""
        low, high = np.searchsorted(self.acks, [first, last])
        return Answers(self.acks[low:high], self.new[low:high], self.again[low:high])

    @property
    def letters(self) -> str:
        """As RFC 6937, section 3.1 writes it: "N N R . N", "2R3N" for five on one ACK."""
        return " ".join(
            (_count(again, "R") + _count(new, "N")) or "."
            for new, again in zip(self.new.tolist(), self.again.tolist(), strict=True)
        )


def _count(number: int, letter: str) -> str:
    return "" if not number else letter if number == 1 else f"{number}{letter}"


def answers(part: Part, by_timer: Sequence[int] = ()) -> Answers:
    """What was sent on the ACKs of a part, less what a timer sent.

    An ACK that came with data counts when it acknowledged something.
    """
    first, last = part.first, part.first + len(part)
    moved = np.diff(part.una, prepend=part.una[:1] - 1) > 0
    acks = part.is_ack & (part.plain | moved)
    position = np.flatnonzero(acks)
    segs, again = part.segs.copy(), part.again
    segs[[event - first for event in by_timer if first <= event < last]] = 0
    if not len(position):
        return Answers(position, position, position)
    new = np.add.reduceat(np.where(again, 0, segs), position)
    return Answers(position + first, new, np.add.reduceat(np.where(again, segs, 0), position))


def longest_run(flags: Ints) -> int:
    padded = np.concatenate([[False], flags.astype(np.bool_), [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return int((edges[1::2] - edges[::2]).max(initial=0))
