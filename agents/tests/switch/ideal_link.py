# SPDX-License-Identifier: Apache-2.0
"""An ideal link in ten lines: the reference of the port model."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

MAX_BYTES = 2**31


@dataclass
class Link:
    """An ideal link.  `free` is when its last bit is on the wire: a fraction of ns, never rounded."""

    rate: int
    delay: int
    buffer: int
    framing: int
    free: Fraction = Fraction(0)

    def send(self, now: int, size: int) -> tuple[int | None, int]:
        """(when the packet arrives, None if it is dropped; bytes it found waiting)."""
        if not self.rate:
            return now + self.delay, 0
        depth = ceil(max(self.free - now, 0) * self.rate / (8 * 10**9))
        if depth + size + self.framing > min(self.buffer or MAX_BYTES, MAX_BYTES):
            return None, depth
        self.free = max(self.free, Fraction(now)) + Fraction((size + self.framing) * 8 * 10**9, self.rate)
        return ceil(self.free) + self.delay, depth
