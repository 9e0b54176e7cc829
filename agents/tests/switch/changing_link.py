# SPDX-License-Identifier: Apache-2.0
"""Links that change, step by step and opportunity by opportunity: the references of p4c_ebpf/runtime/link_model.h."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import cycle
from math import ceil

from testctl_agent.spec import jitter

from agents.tests.switch.ideal_link import MAX_BYTES

NS = 10**9
LONGEST_NS = 3600 * NS
OPPORTUNITY = 1504
Steps = Sequence[tuple[int, int | None]]
"""(time, value); the first one is at 0"""


def value_at(steps: Steps, now: int | Fraction) -> int:
    return next(value or 0 for at, value in reversed(steps) if at <= now)


@dataclass
class ChangingLink:
    """A link with a rate and a delay that change, and times at which it is down.  Times are ns after the traffic's
    start, which the first packet does not come before.

    answered  whether the sender of a packet that is too large gets a message
    refused   of the packet that came last: 2 or 3 if it was too large, 3 with a message
    """

    rates: Steps
    delays: Steps = ((0, 0),)
    downs: Sequence[tuple[int, int]] = ()
    buffer: int = 0
    framing: int = 0
    jitter: str = "none"
    largest: Steps = ((0, None),)
    answered: bool = False
    refused: int = 0
    drawn: int = 0
    last: int = 0
    since: int = 0
    bits: Fraction = Fraction(0)

    def _steps(self, begin: int) -> list[tuple[int, int | float, int | None]]:
        """(from, to, rate) from `begin` on."""
        ends = [*(at for at, _ in self.rates[1:]), float("inf")]
        found = [(max(at, begin), end, rate) for (at, rate), end in zip(self.rates, ends, strict=True)]
        return [one for one in found if one[1] > begin]

    def _advance(self, now: int) -> None:
        for low, high, rate in self._steps(self.since):
            if low <= now:
                length = Fraction(min(high, now) - low) if high < now else Fraction(now - low)
                self.bits = Fraction(0) if rate is None else max(self.bits - length * rate / NS, Fraction(0))
        if any(self.since < down <= now for down, _ in self.downs):
            self.bits = Fraction(0)  # nothing came between two packets
        self.since = now

    def _done(self, now: int) -> int | None:
        left = self.bits
        for low, high, rate in self._steps(now):
            if rate is None:
                return low
            served = Fraction(int(high - low) * rate, NS) if high != float("inf") else left if rate else Fraction(0)
            if rate and left <= served:
                return ceil(low + left * NS / rate)
            left -= served
        return None

    def send(self, now: int, size: int) -> tuple[int | None, int, bool]:
        """(when the packet arrives, None if it is lost; bytes it found waiting; whether the link lost it)."""
        self._advance(now)
        depth = ceil(self.bits / 8)
        most = value_at(self.largest, now)
        down = any(down <= now < up for down, up in self.downs)
        large = bool(most and size - 14 > most)
        self.refused = 0 if down or not large else 3 if self.answered else 2
        if down or large:
            return None, depth, True
        if depth + size + self.framing > min(self.buffer or MAX_BYTES, MAX_BYTES):
            return None, depth, False
        if value_at([(at, 1 if rate is None else 0) for at, rate in self.rates], now):
            done: int | None = now
        else:
            self.bits += 8 * (size + self.framing)
            done = self._done(now)
        ends = next((down for down, _ in self.downs if down > now), None)
        if done is None or done - now > LONGEST_NS or (ends is not None and done > ends):
            return None, depth, True
        return self._jittered(done + value_at(self.delays, done)), depth, False

    def _jittered(self, at: int) -> int:
        found = jitter.parse(self.jitter)
        if found:
            at += jitter.draw(found, jitter.quantiles(found), self.drawn)
            at = max(at, self.last) if found.in_order else at
            self.drawn, self.last = self.drawn + 1, at
        return at


@dataclass
class TraceLink:
    """Mahimahi's link: at each opportunity it takes bytes off its queue.  Times in ns after the trace's beginning."""

    times_ms: Sequence[int]
    buffer: int = 0
    queue: deque[list[int]] = field(default_factory=deque)
    left: dict[int, int] = field(default_factory=dict)
    used: int = 0

    def __post_init__(self) -> None:
        self._times = self._opportunities()
        self._next = next(self._times)
        self._number = 0

    def _opportunities(self) -> Iterator[int]:
        base = 0
        for n, ms in enumerate(cycle(self.times_ms), 1):
            yield base + ms
            if n % len(self.times_ms) == 0:
                base += self.times_ms[-1]

    def run(self, now: int) -> None:
        """Use the opportunities up to a time; left: when each packet, by its number, had left."""
        while self._next * 10**6 <= now:
            room = OPPORTUNITY
            while room and self.queue:
                number, bytes_ = self.queue[0]
                taken = min(room, bytes_)
                room -= taken
                self.queue[0][1] -= taken
                if not self.queue[0][1]:
                    self.queue.popleft()
                    self.left[number] = self._next * 10**6
            self.used += room < OPPORTUNITY
            self._next = next(self._times)

    def send(self, now: int, frame_bytes: int) -> tuple[int | None, int]:
        """(the packet's number, None if it is dropped; bytes it found waiting)."""
        self.run(now)
        size = frame_bytes - 10
        depth = sum(bytes_ for _, bytes_ in self.queue)
        if depth + size > min(self.buffer or MAX_BYTES, MAX_BYTES):
            return None, depth
        self.queue.append([self._number, size])
        self._number += 1
        return self._number - 1, depth
