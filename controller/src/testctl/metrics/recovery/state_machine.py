# SPDX-License-Identifier: Apache-2.0
"""Follows a connection through its losses: SACK scoreboard, pipe, state, and every recovery.

Only the stretches with something SACKed, duplicated or retransmitted are walked event by event;
in between snd.una and snd.nxt say it all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from testctl.metrics.recovery.scoreboard import Scoreboard
from testctl.metrics.recovery.timers import Timers
from testctl.metrics.recovery.trace import Trace
from testctl.records.schema import Bools, Ints

OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
"""States, by the kernel's numbers (enum tcp_ca_state); CWR can't be seen in a capture."""

_FIRST_CHUNK, _CHUNK = 64, 4096


@dataclass
class Episode:
    """A recovery by its events (positions in the trace).

    entered_by: dupacks, early (fewer than three duplicate ACKs), timeout; first_dup: the first duplicate ACK;
    entry: the ACK that let the first retransmission go (a timeout: the retransmission itself);
    point: the recovery point, snd.nxt at entry (or at the last timeout); una, flight: snd.una and FlightSize
    at entry; pipe_entry, pipe_exit: pipe before the first retransmission and before the exit;
    exited_by: ack, timeout, end;
    exit: the ACK that covered the point, or the timeout's retransmission; -1 when the capture ended before.
    """

    entered_by: str
    first_dup: int
    entry: int
    first_retrans: int
    point: int
    una: int
    flight: int
    dup_acks: int
    pipe_entry: int
    pipe_exit: int = -1
    exit: int = -1
    exited_by: str = "end"
    timeouts: int = 0


class Timed(NamedTuple):
    """A retransmission that a timer sent: its event, which timer ("rto", "tlp") and how long that had run."""

    event: int
    by: str
    ran_ns: int


@dataclass(frozen=True)
class Walk:
    """sacked, pipe (bytes; empty unless asked for) and state after each event; episodes in order.

    timed: retransmissions that a timer sent, in order.
    """

    trace: Trace
    sacked: Ints
    pipe: Ints
    state: Ints
    episodes: list[Episode]
    timed: list[Timed]

    @property
    def by_timer(self) -> list[int]:
        """The events of `timed`."""
        return [timer.event for timer in self.timed]

    def delivered(self, events: Ints | slice = slice(None)) -> Ints:
        """Bytes that the ACKs up to an event say have arrived; its steps are DeliveredData (RFC 6937)."""
        return np.asarray(self.trace.una[events] + self.sacked[events])


def walk(trace: Trace, *, pipes: bool = False) -> Walk:
    """The whole connection; with the pipe after every event it takes half as long again."""
    return _Walker(trace, pipes).run()


def _eventful(trace: Trace) -> Bools:
    """Events that begin a stretch: new SACK information, a duplicate ACK, a retransmission."""
    waiting = trace.is_ack & (trace.nxt > trace.una)
    found = waiting & (trace.top > trace.una)
    found |= trace.again
    if not trace.sack:
        found[1:] |= waiting[1:] & trace.plain[1:] & (trace.number[1:] == trace.una[:-1])
    return np.asarray(found)


@dataclass
class _Walker:
    trace: Trace
    pipes: bool
    board: Scoreboard = field(default_factory=Scoreboard)
    state: int = OPEN
    una: int = 0
    nxt: int = 0
    dups: int = 0
    first_dup: int = -1
    last_ack: int = -1
    high_rxt: int = 0
    lost_below: int = 0
    head_ns: int = -1
    timed: list[Timed] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.timers = Timers(self.trace)

    def run(self) -> Walk:
        trace = self.trace
        sacked, state = np.zeros(len(trace), np.int64), np.zeros(len(trace), np.int64)
        pipe = trace.nxt - trace.una if self.pipes else np.empty(0, np.int64)
        starts = np.flatnonzero(_eventful(trace))
        at = 0
        while True:
            following = int(np.searchsorted(starts, at))
            if following == len(starts):
                break
            at = int(starts[following])
            self._begin(at)
            quiet, length = False, _FIRST_CHUNK
            while at < len(trace) and not quiet:
                found, quiet = self._chunk(at, min(at + length, len(trace)))
                length = min(2 * length, _CHUNK)
                part = slice(at, at + len(found))
                sacked[part], pipe_found, state[part] = np.array(found, np.int64).reshape(-1, 3).T
                if self.pipes:
                    pipe[part] = pipe_found
                at += len(found)
        return Walk(trace, sacked, pipe, state, self.episodes, self.timed)

    def _begin(self, at: int) -> None:
        """Take up snd.una and snd.nxt where a stretch begins."""
        before = at - 1
        start = self.trace.start
        self.una, self.nxt = (int(self.trace.una[before]), int(self.trace.nxt[before])) if at else (start, start)
        self.dups, self.first_dup, self.head_ns = 0, -1, -1
        earlier = np.flatnonzero(self.trace.is_ack[max(at - _CHUNK, 0) : at])
        self.last_ack = int(earlier[-1]) + max(at - _CHUNK, 0) if len(earlier) else -1

    def _chunk(self, low: int, high: int) -> tuple[list[tuple[int, int, int]], bool]:
        """(sacked, pipe, state) after each event, up to `high` or to where nothing is missing any more."""
        trace, found = self.trace, []
        part = slice(low, high)
        columns = (trace.is_ack, trace.seq, trace.end, trace.again, trace.number, trace.plain, trace.top, trace.at)
        for event, (is_ack, seq, end, again, number, plain, top, at) in enumerate(
            zip(*(column[part].tolist() for column in columns), strict=True), low
        ):
            if is_ack:
                self._ack(event, number, plain, top, at)
            else:
                self._data(event, seq, end, again)
            found.append((self.board.total, self._pipe() if self.pipes else 0, self.state))
            if self.state == OPEN and not self.dups:
                return found, True
        return found, False

    def _ack(self, event: int, number: int, plain: bool, top: int, at: int) -> None:
        advanced = number > self.una
        duplicate = plain and not self.trace.sack and number == self.una < self.nxt
        duplicate &= self.last_ack >= 0 or self.trace.from_start
        if advanced:
            if self.state in (RECOVERY, LOSS) and number >= self.episodes[-1].point:
                self._leave(event, "ack")
            self.una = number
            self.board.advance(number)
            self.dups, self.first_dup, self.head_ns = 0, -1, -1
        new = self._blocks(at) if top > self.una else 0
        if new or duplicate:
            self.first_dup = event if self.first_dup < 0 else self.first_dup
            self.dups += 1
        self.last_ack = event
        if self.state in (OPEN, DISORDER):
            self.state = DISORDER if self.board.total or self.dups else OPEN

    def _blocks(self, at: int) -> int:
        """Take in an ACK's SACK blocks; returns the bytes newly SACKed."""
        edges = self.trace.blocks[at].tolist()
        new = 0
        for low, high in zip(edges[::2], edges[1::2], strict=True):
            if high > low >= 0 and high > self.una:
                new += self.board.add(max(low, self.una), high)
        return new

    def _leave(self, event: int, by: str) -> None:
        episode = self.episodes[-1]
        episode.exit, episode.exited_by, episode.pipe_exit = event, by, self._pipe()
        self.state, self.high_rxt, self.lost_below = OPEN, 0, 0

    def _data(self, event: int, seq: int, end: int, again: bool) -> None:
        if again:
            self._again(event, seq, end)
        self.nxt = max(self.nxt, end)

    def _again(self, event: int, seq: int, end: int) -> None:
        doubt = bool(self.board.total or self.dups or self.state in (RECOVERY, LOSS))
        by = self.timers.sent_by(event, self.una, self.nxt, self.head_ns, doubt, self.state)
        if by != "ack":
            self.timed.append(Timed(event, by, self.timers.ran_ns))
        if by == "tlp":
            return
        if by == "rto":
            self._timeout(event)
        elif self.state in (OPEN, DISORDER):
            self._enter(event)
        self.high_rxt = max(self.high_rxt, end)
        if seq <= self.una:
            self.head_ns = int(self.trace.time_ns[event])

    def _timeout(self, event: int) -> None:
        pipe = self._pipe()
        if self.state == RECOVERY:
            self._leave(event, "timeout")
        if self.state == LOSS:
            self.episodes[-1].timeouts += 1
            self.episodes[-1].point = max(self.episodes[-1].point, self.nxt)
        else:
            flight = self.nxt - self.una
            entered = Episode("timeout", event, event, event, self.nxt, self.una, flight, self.dups, pipe, timeouts=1)
            self.episodes.append(entered)
        self.state, self.lost_below, self.high_rxt = LOSS, self.nxt, 0

    def _enter(self, event: int) -> None:
        entry = self.last_ack if self.last_ack >= 0 else event
        enough = self.dups >= 3 or self.board.total > 2 * self.trace.mss
        first = self.first_dup if self.first_dup >= 0 else entry
        by = "dupacks" if enough else "early"
        self.episodes.append(
            Episode(by, first, entry, event, self.nxt, self.una, self.nxt - self.una, self.dups, self._pipe())
        )
        self.state, self.high_rxt, self.lost_below = RECOVERY, 0, 0

    def _pipe(self) -> int:
        if self.board.total or self.state in (RECOVERY, LOSS):
            return self.board.pipe(self.una, self.nxt, self.trace.mss, self.high_rxt, self.lost_below)
        return self.nxt - self.una
