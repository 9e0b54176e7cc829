# SPDX-License-Identifier: Apache-2.0
"""RED as the paper has it, and the port of all such models, to compare the lab's with.

Numbers are floats where the lab has fixed point.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from testctl_agent.spec import aqm

from agents.tests.switch.traffic import Packet

MTU = 1514
DROPPED, PASSED, MARKED = range(3)


class Port:
    """First in, first out, at `rate`, a divisor of 8 * 10^9, without framing, delay and limit."""

    every: float = math.inf
    """Nanoseconds between two updates, the first so long after the first packet."""

    def __init__(self, text: str, rate: int) -> None:
        found = aqm.parse(text)
        assert found is not None
        assert 8 * 10**9 % rate == 0
        self.of, self.ns_per_byte, self._state = found, 8 * 10**9 // rate, found.seed
        self.queue: deque[int] = deque()
        self.waiting = 0

    def run(self, packets: Sequence[Packet]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
        """What became of each packet, as `Passed` of beside.py, and when its last bit was sent; 0: never."""
        self.packets, self.free, self.next_update = packets, 0, packets[0][0] + self.every
        self.what, self.at_ns = np.ones(len(packets), np.int8), np.zeros(len(packets), np.int64)
        for number, (at, *_) in enumerate(packets):
            self._advance(at)
            idle_ns = max(at - self.free, 0)
            self.free = max(self.free, at)
            self.arrive(number, at, idle_ns)
            self._advance(at)
        while self.waits():
            self._advance(self.free)
        return self.what, self.at_ns

    def _advance(self, now: int) -> None:
        while True:
            if self.next_update <= min(self.free if self.waits() else now, now):
                self.update(int(self.next_update))
                self.next_update += self.every
            elif self.waits() and self.free <= now:
                number = self.leave(self.free)
                if number is not None:
                    self.free += self.packets[number][1] * self.ns_per_byte
                    self.at_ns[number] = self.free
            else:
                if self.free <= now:
                    self.leave(self.free)
                return

    def mark(self, number: int) -> bool:
        """Whether the packet has CE now."""
        if self.packets[number][3]:
            self.what[number] = MARKED
        return bool(self.packets[number][3])

    def drop(self, number: int) -> None:
        self.what[number] = DROPPED

    def random(self) -> int:
        """Of 64 bits, by SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""
        self._state = (self._state + 0x9E3779B97F4A7C15) % 2**64
        z = (self._state ^ (self._state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    def waits(self) -> bool:
        return bool(self.queue)

    def arrive(self, number: int, now: int, idle_ns: int) -> None:
        """idle_ns: for so long the line has been free, or nothing has arrived since."""
        self.queue.append(number)
        self.waiting += self.packets[number][1]

    def leave(self, now: int) -> int | None:
        """What is sent now; a device asks when its line is free, also where nothing waits."""
        if not self.queue:
            return None
        number = self.queue.popleft()
        self.waiting -= self.packets[number][1]
        return number

    def update(self, now: int) -> None:
        raise NotImplementedError


class Red(Port):
    """Floyd and Jacobson, 1993, figure 2; the average has the packet that arrives, and an idle time counts once."""

    average, count = 0.0, -1

    def arrive(self, number: int, now: int, idle_ns: int) -> None:
        weight = 2.0 ** -self.of["wq"]
        self.average *= (1 - weight) ** (idle_ns // (MTU * self.ns_per_byte))
        self.average += weight * (self.waiting + self.packets[number][1] - self.average)
        p = self._probability()
        self.count = self.count + 1 if p else -1
        if p and self._chosen(p):
            self.count = 0
            if p == 1 or not self.of["ecn"] or not self.mark(number):
                self.drop(number)
                return
        super().arrive(number, now, idle_ns)

    def _probability(self) -> float:
        low, high, most = self.of["min"], self.of["max"], self.of["max_p"] / 10_000
        if self.average < low:
            return 0.0
        if self.average < high:
            return float(most * (self.average - low) / (high - low))
        if self.of["gentle"] and self.average < 2 * high:
            return float(most + (1 - most) * (self.average - high) / high)
        return 1.0

    def _chosen(self, p: float) -> bool:
        """With p / (1 - count * p)"""
        rest = 1 - self.count * p
        return p == 1 or rest <= 0 or (self.random() >> 32) / 2**32 * rest < p
