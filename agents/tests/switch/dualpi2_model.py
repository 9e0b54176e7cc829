# SPDX-License-Identifier: Apache-2.0
"""DualPI2 after the pseudocode of RFC 9332, appendix A, to compare the lab's with; probabilities are whole numbers of
2^-56, as there.

The scheduler, which the RFC leaves open, is that of lab/kernel/aqm_dualpi2.h.
"""

from __future__ import annotations

from collections import deque

from agents.tests.switch.aqm_model import MTU, Port

L, C = 0, 1
NOT_ECT, ECT_1 = 0, 1
ALL, ONE = 10_000, 2**56


class DualPi2(Port):
    def __init__(self, text: str, rate: int) -> None:
        super().__init__(text, rate)
        self.target, self.every, self.min_th, self.range, self.alpha, self.beta = (
            self.of[name] for name in ("target", "tupdate", "min_th", "range", "alpha", "beta")
        )
        self.k, self.th_len, self.weight = self.of["k"], self.of["th_len"], self.of["weight"]
        self.counts = [self.random() >> 8, self.random() >> 8]
        self.credit = self.first_credit = MTU * (2 * self.weight - ALL)
        self.base = self.previous = 0
        self.queues: tuple[deque[int], deque[int]] = (deque(), deque())

    def waits(self) -> bool:
        return any(self.queues)

    def arrive(self, number: int, now: int, idle_ns: int) -> None:
        self.queues[L if self.packets[number][3] == ECT_1 else C].append(number)

    def update(self, now: int) -> None:
        delay = max((now - self.packets[queue[0]][0] for queue in self.queues if queue), default=0)
        change = _term(self.alpha, delay - self.target) + _term(self.beta, delay - self.previous)
        self.base, self.previous = min(max(self.base + change, 0), ONE), delay

    def leave(self, now: int) -> int | None:
        while any(self.queues):
            both = all(self.queues)
            name = L if self.queues[L] and (not self.queues[C] or self.credit <= 0) else C
            number = self.queues[name].popleft()
            size = self.packets[number][1]
            if not self._passes(name, number, now):
                continue
            if both:
                self.credit += self.weight * size if name == L else (self.weight - ALL) * size
            return number
        self.credit = self.first_credit
        return None

    def _passes(self, name: int, number: int, now: int) -> bool:
        """Whether a packet that was taken from its queue is sent."""
        at, _, _, ecn = self.packets[number]
        of_c, of_l = self.base**2 // ONE, self.k * self.base
        if name == L and of_l < ONE:
            native = self._laqm(now - at) if len(self.queues[L]) > self.th_len else 0
            if self._recur(L, max(native, of_l)):
                self.mark(number)
        elif self._recur(name, of_c):
            if name == L or ecn == NOT_ECT or of_l >= ONE:
                self.drop(number)
                return False
            self.mark(number)
        elif name == L and self._recur(L, of_l):
            self.mark(number)
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
