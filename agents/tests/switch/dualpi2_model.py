# SPDX-License-Identifier: Apache-2.0
"""DualPI2 after the pseudocode of RFC 9332, appendix A, to compare the lab's with; probabilities are whole numbers of
2^-56, as there.

The scheduler, which the RFC leaves open, is that of lab/kernel/aqm_dualpi2.h.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from testctl_agent.spec import aqm

from agents.tests.switch.traffic import Packet

L, C = 0, 1
NOT_ECT, ECT_1 = 0, 1
MTU, ALL, ONE = 1514, 10_000, 2**56
_DROPPED, _PASSED, _MARKED = range(3)


class DualPi2:
    """At a port that sends at `rate`, a divisor of 8 * 10^9, without framing and delay."""

    def __init__(self, text: str, rate: int) -> None:
        found = aqm.parse(text)
        assert found is not None
        assert 8 * 10**9 % rate == 0
        self.ns_per_byte = 8 * 10**9 // rate
        self.target, self.tupdate, self.min_th, self.range, self.alpha, self.beta = (
            found[name] for name in ("target", "tupdate", "min_th", "range", "alpha", "beta")
        )
        self.k, self.th_len, self.weight = found["k"], found["th_len"], found["weight"]
        state = found.seed
        self.counts = [0, 0]
        for name in (L, C):
            state, number = _split_mix(state)
            self.counts[name] = number >> 8
        self.credit = self.first_credit = MTU * (2 * self.weight - ALL)
        self.base = self.previous = 0
        self.queues: tuple[deque[int], deque[int]] = (deque(), deque())

    def run(self, packets: Sequence[Packet]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
        """What became of each packet, as `Passed` of beside.py, and when its last bit was sent; 0: never."""
        self.packets = packets
        self.what, self.at_ns = np.zeros(len(packets), np.int8), np.zeros(len(packets), np.int64)
        self.free, self.update = 0, packets[0][0] + self.tupdate
        for number, (at, _, _, ecn) in enumerate(packets):
            self._advance(at)
            if not any(self.queues):
                self.free = max(self.free, at)
            self.queues[L if ecn == ECT_1 else C].append(number)
            self._advance(at)
        while any(self.queues):
            self._advance(max(self.free, self.update))
        return self.what, self.at_ns

    def _advance(self, now: int) -> None:
        while min(self.update, self.free if any(self.queues) else self.update) <= now:
            if self.update <= self.free or not any(self.queues):
                self._controller(self.update)
                self.update += self.tupdate
            else:
                self._send(self.free)

    def _controller(self, now: int) -> None:
        delay = max((now - self.packets[queue[0]][0] for queue in self.queues if queue), default=0)
        change = _term(self.alpha, delay - self.target) + _term(self.beta, delay - self.previous)
        self.base, self.previous = min(max(self.base + change, 0), ONE), delay

    def _send(self, now: int) -> None:
        while any(self.queues):
            both = all(self.queues)
            name = L if self.queues[L] and (not self.queues[C] or self.credit <= 0) else C
            number = self.queues[name].popleft()
            size = self.packets[number][1]
            if not self._passes(name, number, now):
                continue
            if both:
                self.credit += self.weight * size if name == L else (self.weight - ALL) * size
            self.free = now + size * self.ns_per_byte
            self.at_ns[number] = self.free
            return
        self.credit = self.first_credit

    def _passes(self, name: int, number: int, now: int) -> bool:
        """Whether a packet that was taken from its queue is sent; what is not marked below has passed."""
        at, _, _, ecn = self.packets[number]
        self.what[number] = _PASSED
        of_c, of_l = self.base**2 // ONE, self.k * self.base
        if name == L and of_l < ONE:
            native = self._laqm(now - at) if len(self.queues[L]) > self.th_len else 0
            if self._recur(L, max(native, of_l)):
                self.what[number] = _MARKED
        elif self._recur(name, of_c):
            if name == L or ecn == NOT_ECT or of_l >= ONE:
                self.what[number] = _DROPPED
                return False
            self.what[number] = _MARKED
        elif name == L and self._recur(L, of_l):
            self.what[number] = _MARKED
        return True

    def _laqm(self, wait: int) -> int:
        if wait >= self.min_th + self.range:
            return ONE
        return max(wait - self.min_th, 0) * ONE // self.range

    def _recur(self, name: int, likelihood: int) -> bool:
        self.counts[name] += min(likelihood, ONE)
        if self.counts[name] < ONE:
            return False
        self.counts[name] -= ONE
        return True


def _term(gain: int, delay_ns: int) -> int:
    """A gain in 1/1000 Hz times a delay, as a probability; rounded to a ns toward 0."""
    return (abs(delay_ns) * gain // 1000 if delay_ns > 0 else -(abs(delay_ns) * gain // 1000)) * (ONE // 10**9)


def _split_mix(state: int) -> tuple[int, int]:
    """SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): the next state, and its number."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return state, z ^ (z >> 31)
