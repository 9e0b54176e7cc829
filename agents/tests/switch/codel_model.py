# SPDX-License-Identifier: Apache-2.0
"""CoDel and FQ-CoDel after RFC 8289, section 5, and RFC 8290, section 4, to compare the lab's with."""

from __future__ import annotations

import math
from collections import deque

from agents.tests.switch.aqm_model import MTU, Port


class Controlled:
    """A queue with CoDel's state; times are nanoseconds."""

    def __init__(self, port: Port) -> None:
        self.port, self.queue, self.waiting = port, deque[int](), 0
        self.first_above = self.drop_next = self.count = self.last_count = 0
        self.dropping = False

    def put(self, number: int) -> None:
        self.queue.append(number)
        self.waiting += self.port.packets[number][1]

    def _take(self, now: int) -> tuple[int | None, bool]:
        """dodequeue(): a packet, and whether it may be dropped."""
        if not self.queue:
            self.first_above = 0
            return None, False
        number = self.queue.popleft()
        self.waiting -= self.port.packets[number][1]
        if now - self.port.packets[number][0] < self.port.of["target"] or self.waiting <= MTU:
            self.first_above = 0
        elif not self.first_above:
            self.first_above = now + self.port.of["interval"]
        else:
            return number, now >= self.first_above
        return number, False

    def _law(self, time: int) -> int:
        return time + math.isqrt(self.port.of["interval"] ** 2 // self.count)

    def _marked(self, number: int | None) -> bool:
        return bool(self.port.of["ecn"] and number is not None and self.port.mark(number))

    def next(self, now: int) -> int | None:
        """dequeue()"""
        number, may = self._take(now)
        if self.dropping:
            self.dropping = may
            while self.dropping and now >= self.drop_next and number is not None:
                self.count += 1
                if self._marked(number):
                    self.drop_next = self._law(self.drop_next)
                    break
                self.port.drop(number)
                number, self.dropping = self._take(now)
                if self.dropping:
                    self.drop_next = self._law(self.drop_next)
        elif may and number is not None:
            if not self._marked(number):
                self.port.drop(number)
                number, _ = self._take(now)
            self.dropping, since = True, self.count - self.last_count
            self.count = since if since > 1 and now - self.drop_next < 16 * self.port.of["interval"] else 1
            self.last_count, self.drop_next = self.count, self._law(now)
        return number


class Codel(Port):
    def __init__(self, text: str, rate: int) -> None:
        super().__init__(text, rate)
        self.one = Controlled(self)

    def waits(self) -> bool:
        return bool(self.one.queue)

    def arrive(self, number: int, now: int, idle_ns: int) -> None:
        self.one.put(number)

    def leave(self, now: int) -> int | None:
        return self.one.next(now)


class FqCodel(Port):
    """Each flow has a queue of its own: no two of them have the same hash."""

    def __init__(self, text: str, rate: int) -> None:
        super().__init__(text, rate)
        self.flows: dict[tuple[int, int], Controlled] = {}
        self.deficits: dict[tuple[int, int], int] = {}
        self.new, self.old = deque[tuple[int, int]](), deque[tuple[int, int]]()

    def waits(self) -> bool:
        return any(flow.queue for flow in self.flows.values())

    def arrive(self, number: int, now: int, idle_ns: int) -> None:
        _, _, *name = self.packets[number]
        flow = (name[0], name[1])
        self.flows.setdefault(flow, Controlled(self)).put(number)
        if flow not in self.new and flow not in self.old:
            self.new.append(flow)
            self.deficits[flow] = self.of["quantum"]

    def leave(self, now: int) -> int | None:
        while self.new or self.old:
            of_new = bool(self.new)
            queues = self.new if of_new else self.old
            flow = queues[0]
            if self.deficits[flow] <= 0:
                self.deficits[flow] += self.of["quantum"]
                self.old.append(queues.popleft())
                continue
            number = self.flows[flow].next(now)
            if number is not None:
                self.deficits[flow] -= self.packets[number][1]
                return number
            queues.popleft()
            if of_new:
                self.old.append(flow)
        return None
