# SPDX-License-Identifier: Apache-2.0
"""Conversations over a link that is written down: what both of its ends capture, as text for conversation.records."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from testctl.records import Records

from controller.tests.rules.conversation import records

HEADERS = 66
"""Of a packet, as conversation.py has it."""


@dataclass
class Path:
    """From a to b: each packet takes size * 8 / mbit microseconds of the link, one after another, and 5 ms.

    drop     packets by their number, from 0, that never enter the link; buffer: bytes that wait at most
    mark     packets that arrive with CE; threshold: bytes from which on all do; late: {packet: µs more}
    twice    packets that arrive twice
    clock_us b's clock, less a's; third: more of the ACK that ends the handshake
    """

    mbit: float = 12.0
    drop: Collection[int] = ()
    buffer: float = float("inf")
    mark: Collection[int] = ()
    threshold: float = float("inf")
    late: Mapping[int, float] = field(default_factory=dict)
    twice: Collection[int] = ()
    clock_us: float = 0.0
    third: str = ""
    lines: list[str] = field(default_factory=list)
    free_us: float = 0.0
    sent: int = 0
    lost: list[int] = field(default_factory=list)
    marked: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free_us = self.begins_us + HEADERS * 8 / self.mbit

    @property
    def begins_us(self) -> float:
        """When the handshake is over at a."""
        return 10_000 + HEADERS * 8 / self.mbit

    def data(self, at_us: float, start: int, end: int, more: str = "") -> None:
        """A packet that a sends."""
        number, size = self.sent, end - start + HEADERS
        self.sent += 1
        self.lines.append(f"{at_us} a > A {start}:{end} ack 0 {more}")
        waits = max(0.0, self.free_us - at_us) * self.mbit / 8
        if number in self.drop or waits + size > self.buffer:
            self.lost.append(number)
            return
        self.free_us = max(self.free_us, at_us) + size * 8 / self.mbit
        if number in self.mark or waits >= self.threshold:
            self.marked.append(number)
            more = more.replace("ecn 2", "ecn 3")
        for _ in range(1 + (number in self.twice)):
            at_b = self.free_us + 5_000 + self.late.get(number, 0.0) + self.clock_us
            self.lines.append(f"{at_b} b < A {start}:{end} ack 0 {more}")

    def burst(self, at_us: float, first: int, count: int, more: str = "", size: int = 1434) -> None:
        for number in range(first, first + count):
            self.data(at_us, number * size, (number + 1) * size, more)

    def acked(self, at_us: float, number: int, more: str = "") -> None:
        """An ACK that arrives at a."""
        self.lines += [
            f"{at_us - 5_000 + self.clock_us} b > A ack {number} {more}",
            f"{at_us} a < A ack {number} {more}",
        ]

    def records(self, ends: str = "ab", hello: bool = True) -> Records:
        """What these ends captured."""
        if hello:
            took, answer = HEADERS * 8 / self.mbit, self.begins_us
            there = answer - 5_000 + self.clock_us
            begin = ["0 a > S win 64000", f"{there} b < S win 64000", f"{there} b > SA ack 0 win 64000"]
            begin += [f"{answer} a < SA ack 0 win 64000", f"{answer} a > A ack 0 {self.third}"]
            begin.append(f"{answer + 5_000 + took + self.clock_us} b < A ack 0 {self.third}")
            self.lines = begin + self.lines
        return records("\n".join(line for line in self.lines if line.split()[1] in ends))
