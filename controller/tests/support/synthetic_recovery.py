# SPDX-License-Identifier: Apache-2.0
"""A small sender and receiver that make up the packets of loss recoveries: RFC 6937's and RFC 6675's rules.

Every arrival is acknowledged at once: an ACK comes RTT_US after its packet, but not sooner than
`gap_us` after what happened last; what it lets go follows 1 µs apart.  When nothing is under way
any more, a timeout sends the first outstanding packet again.  Written for exactness, not for speed:
the scoreboard is a set of segments, and pipe is counted anew on every ACK.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from controller.tests.support.synthetic import Conversation

MSS = 1000
RTT_US = 2_000
RTO_US = 250_000


@dataclass
class Made:
    """A recovery as the sender made it; first_dup, entry, exit: ACKs (their count from 0), exit -1: not yet."""

    entered_by: str
    first_dup: int
    entry: int
    flight: int
    exit: int = -1
    exited_by: str = "end"
    delivered: int = 0
    out: int = 0
    pipe_exit: int = -1


@dataclass
class Sender:
    """Sends `segments` with a window of `window` segments of MSS bytes.

    rule: rfc6675, rate_halving, prr, prr_crb or prr_ub.  A segment is marked lost with three SACKed above
    it (RFC 6675).  lost, late: transmissions (their count from 0) that get lost, or come late_us later.
    letters: what was sent on each ACK; made: the recoveries.
    """

    rule: str
    window: int
    segments: int
    lost: Collection[int]
    late: Collection[int] = ()
    late_us: int = 150
    isn: int = 1000
    gap_us: int = 100
    letters: list[str] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.talk = Conversation(delay_us=RTT_US / 2, isn=self.isn)
        self.una = self.nxt = self.sent = 0
        self.sacked: set[int] = set()
        self.again: set[int] = set()
        self.arrived: set[int] = set()
        self.cwnd, self.ssthresh = self.window, 1 << 30
        self.state = "open"
        self.point = self.flight = self.delivered = self.out = self.count = 0
        self.lost_below = 0
        self.first_dup = -1
        self.path: list[tuple[float, int]] = []
        self.now_us = 100_000.0

    def run(self) -> Sender:
        """Until all is acknowledged."""
        while self.nxt < min(self.window, self.segments):
            self._send(self.nxt)
            self.now_us += 10
        while self.una < self.segments:
            if not self.path:
                self._timeout()
                continue
            due_us, segment = self.path.pop(0)
            self.now_us = max(self.now_us + self.gap_us, due_us)
            self._arrive(segment)
        return self

    def _send(self, segment: int) -> None:
        arrives = self.sent not in self.lost
        self.talk.data(self.now_us, segment * MSS, MSS, arrives=arrives)
        if arrives:
            self.path.append((self.now_us + RTT_US + self.late_us * (self.sent in self.late), segment))
            self.path.sort(key=lambda packet: packet[0])
        self.sent += 1
        self.nxt = max(self.nxt, segment + 1)

    def _arrive(self, segment: int) -> None:
        """A segment reached the receiver; its ACK comes to the sender now."""
        self.arrived.add(segment)
        ack = next(n for n in range(self.segments + 1) if n not in self.arrived)
        blocks = _blocks(self.arrived, ack, segment)[:3]
        self.talk.ack(self.now_us - RTT_US / 2, ack * MSS, sacks=[edge * MSS for block in blocks for edge in block])
        told = {n for low, high in blocks for n in range(low, high)}
        before, known = self.una + len(self.sacked), len(self.sacked | told)
        if ack > self.una:
            self.first_dup = -1
        if known > len(self.sacked) and self.first_dup < 0:
            self.first_dup = len(self.letters)
        self.una = max(self.una, ack)
        self.sacked = {n for n in self.sacked | told if n >= ack}
        self._acked(self.una + len(self.sacked) - before)

    def _is_lost(self, segment: int) -> bool:
        return segment < self.lost_below or sum(n > segment for n in self.sacked) >= 3

    @property
    def pipe(self) -> int:
        """RFC 6675, section 4."""
        outstanding = [n for n in range(self.una, self.nxt) if n not in self.sacked]
        highest = max(self.again, default=-1)
        return sum((not self._is_lost(n)) + (n <= highest) for n in outstanding)

    def _acked(self, delivered: int) -> None:
        if self.state != "open" and self.una >= self.point:
            self._leave("ack")
        if self.state == "open" and self.una < self.nxt and self._is_lost(self.una):
            self._enter()
        letters, room = "", self._room(delivered)
        while room > 0 and (segment := self._next()) is not None:
            letters += "R" if segment < self.nxt else "N"
            if segment < self.nxt:
                self.again.add(segment)
            self.now_us += 1
            self._send(segment)
            self.out += 1
            room -= 1
        self.letters.append(letters or ".")
        if self.state != "open":
            self.made[-1].delivered, self.made[-1].out = self.delivered, self.out
            self.made[-1].pipe_exit = self.pipe

    def _next(self) -> int | None:
        for segment in range(self.una, self.nxt):
            if segment not in self.sacked and segment not in self.again and self._is_lost(segment):
                return segment
        return self.nxt if self.nxt < self.segments else None

    def _enter(self) -> None:
        self.state, self.again, self.point = "recovery", set(), self.nxt
        self.flight = self.nxt - self.una
        self.ssthresh = max(self.flight // 2, 2)
        self.delivered = self.out = self.count = 0
        now = len(self.letters)
        self.made.append(Made("dupacks", self.first_dup if self.first_dup >= 0 else now, now, self.flight))

    def _leave(self, by: str) -> None:
        self.made[-1].exit, self.made[-1].exited_by = len(self.letters), by
        self.state, self.again, self.lost_below = "open", set(), 0
        self.cwnd = min(self.cwnd, self.ssthresh) if self.rule == "rate_halving" else self.ssthresh

    def _timeout(self) -> None:
        """RFC 6675, section 5.1: everything outstanding is lost."""
        self.now_us += RTO_US
        if self.state == "recovery":
            self._leave("timeout")
        if self.state != "loss":
            self.made.append(Made("timeout", len(self.letters), len(self.letters), self.nxt - self.una))
            self.ssthresh = max((self.nxt - self.una) // 2, 2)
            self.delivered = self.out = 0
        self.state, self.point, self.lost_below, self.again = "loss", self.nxt, self.nxt, {self.una}
        self._send(self.una)

    def _room(self, delivered: int) -> int:
        if self.state == "loss":
            return 2
        if self.state == "open":
            return int(len(self.sacked) <= 2) if self.sacked else max(self.cwnd - (self.nxt - self.una), 0)
        first = self.delivered == 0
        self.delivered += delivered
        rules: dict[str, Callable[[int], int]] = {"rfc6675": self._rfc6675, "rate_halving": self._rate_halving}
        return max(rules.get(self.rule, self._prr)(delivered), int(first))

    def _rfc6675(self, _: int) -> int:
        return self.ssthresh - self.pipe

    def _rate_halving(self, _: int) -> int:
        self.count += 1
        if self.count % 2 == 0 and self.cwnd > self.ssthresh // 2:
            self.cwnd -= 1
        self.cwnd = min(self.cwnd, self.pipe + 1)
        return self.cwnd - self.pipe

    def _prr(self, delivered: int) -> int:
        """RFC 6937, section 3."""
        pipe = self.pipe
        if pipe > self.ssthresh:
            return -(-self.delivered * self.ssthresh // self.flight) - self.out
        limits = {
            "prr": max(self.delivered - self.out, delivered) + 1,
            "prr_crb": self.delivered - self.out,
            "prr_ub": self.ssthresh,
        }
        return min(self.ssthresh - pipe, limits[self.rule])


def _blocks(arrived: Collection[int], ack: int, newest: int) -> list[tuple[int, int]]:
    """SACK blocks above `ack`, the one of the newest segment first (RFC 2018, 4)."""
    found: list[tuple[int, int]] = []
    for segment in sorted(n for n in arrived if n > ack):
        if found and found[-1][1] == segment:
            found[-1] = (found[-1][0], segment + 1)
        else:
            found.append((segment, segment + 1))
    return sorted(found, key=lambda block: (not block[0] <= newest < block[1], -block[0]))
