# SPDX-License-Identifier: Apache-2.0
"""A sender in segments: Linux's scoreboard without time, with a loss recovery of lab/cc."""

from __future__ import annotations

from testctl_agent.cc.host import Connection
from testctl_agent.cc.interface import Operation

from agents.tests.cc.sources import algorithm


class Sender:
    """All segments up to `flight` are in the network; `lost` of them never arrive.

    One ACK is returned for each segment that arrives, in order.  Duplicates: three, then recovery,
    which has found exactly the segments in `lost` below what was SACKed.
    """

    def __init__(self, name: str, flight: int, lost: set[int]) -> None:
        self.connection = Connection(algorithm(name), cwnd=flight, ssthresh=flight)
        self.lost = lost
        self.next = flight + 1
        self.una = 1
        self.sacked: set[int] = set()
        self.marked: set[int] = set()
        self.repeated: set[int] = set()
        self.sent = 0
        self.delivered = 0
        self.recovering = False
        self.wire = [segment for segment in range(1, flight + 1) if segment not in lost]

    @property
    def flight(self) -> int:
        return self.next - self.una

    @property
    def pipe(self) -> int:
        return self.flight - len(self.sacked) - len(self.marked) + len(self.repeated)

    @property
    def cwnd(self) -> int:
        return self.connection.window.cwnd

    @property
    def ssthresh(self) -> int:
        return self.connection.window.ssthresh

    def _tell(self, operation: Operation, acked: int = 0) -> int:
        return self.connection.tell(
            operation, acked=acked, pipe=self.pipe, flight=self.flight, sent=self.sent, delivered=self.delivered,
            mss_bytes=1460, rtt_us=10000, srtt_us=10000, limited=1,
        )  # fmt: skip

    def _mark(self) -> None:
        """Three segments above it are SACKed (RFC 6675, IsLost)."""
        found = {n for n in self.lost if n >= self.una and sum(s > n for s in self.sacked) >= 3}
        self.marked |= found - self.repeated - self.sacked

    def _transmit(self) -> str:
        did = ""
        while self.pipe < self.cwnd:
            missing = sorted(self.marked - self.repeated)
            if missing:
                self.repeated.add(missing[0])
                self.wire.append(missing[0])
                did += "R"
            else:
                self.wire.append(self.next)
                self.next += 1
                did += "N"
            self.sent += self.recovering
        return did or "."

    def ack(self) -> str:
        """The next segment arrives and is acknowledged; what is sent on that: N, R or '.'."""
        segment = self.wire.pop(0)
        self.delivered += 1
        self.sacked.add(segment)
        self.repeated.discard(segment)
        self.marked.discard(segment)
        while self.una in self.sacked:
            self.sacked.discard(self.una)
            self.una += 1
        self._mark()
        if not self.recovering and self.marked:
            self.recovering = True
            self.connection.window.ssthresh = self._tell(Operation.LOSS)
            self._tell(Operation.RECOVERY_ENTER)
        if self.recovering:
            self._tell(Operation.RECOVERY_ACK, acked=1)
        return self._transmit()
