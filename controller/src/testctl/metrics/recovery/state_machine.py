# SPDX-License-Identifier: Apache-2.0
"""Follows a connection through its losses: SACK scoreboard, pipe, state, and every recovery.

Only the stretches with something SACKed, duplicated or retransmitted are walked event by event;
in between snd.una and snd.nxt say it all.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from testctl.metrics.recovery.scoreboard import Scoreboard
from testctl.metrics.recovery.timers import Timers
from testctl.metrics.recovery.trace import Trace
from testctl.metrics.recovery.trace_part import Part
from testctl.records.schema import Ints

OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
"""States, by the kernel's numbers (enum tcp_ca_state); CWR can't be seen in a capture."""

_FIRST_CHUNK, _CHUNK = 64, 4096


@dataclass
class Episode:
    """A recovery by its events (positions in the trace).

    entered_by: dupacks, early (fewer than three duplicate ACKs), timeout, path_mtu; first_dup: the first duplicate ACK;
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
    """A retransmission that a timer sent: its event and row of the packets table, which timer ("rto", "tlp") and how
    long that had run."""

    event: int
    row: int
    by: str
    ran_ns: int


class Stretch(NamedTuple):
    """Consecutive events in which something was missing, from event `first` on; the others as in Walk."""

    first: int
    sacked: Ints
    pipe: Ints
    state: Ints


@dataclass(frozen=True)
class Walk:
    """What was followed: stretches and episodes in order; in between nothing is SACKed and the state is OPEN.

    timed: retransmissions that a timer sent, in order; pipes: whether stretches have the pipe.
    """

    trace: Trace
    stretches: list[Stretch]
    episodes: list[Episode]
    timed: list[Timed]
    pipes: bool

    @property
    def by_timer(self) -> list[int]:
        """The events of `timed`."""
        return [timer.event for timer in self.timed]

    def sacked(self, low: int, high: int) -> Ints:
        """SACKed bytes above snd.una after each event low <= event < high."""
        return self._laid(np.zeros(high - low, np.int64), low, "sacked")

    def state(self, low: int, high: int) -> Ints:
        """The state after each event low <= event < high."""
        return self._laid(np.zeros(high - low, np.int64), low, "state")

    def pipe(self, low: int, high: int) -> Ints:
        """The pipe in bytes after each event low <= event < high.  Raises ValueError unless it was followed."""
        if not self.pipes:
            raise ValueError("want a walk with pipes=True")
        part = self.trace.part(low, high)
        return self._laid(part.nxt - part.una, low, "pipe")

    def delivered(self, low: int, high: int) -> Ints:
        """Bytes that the ACKs up to each event low <= event < high say have arrived; its steps are DeliveredData
        (RFC 6937)."""
        return np.asarray(self.trace.part(low, high).una + self.sacked(low, high))

    def _laid(self, whole: Ints, low: int, name: str) -> Ints:
        """The values of the events from `low` on, with the stretches' put in their place."""
        high = low + len(whole)
        at = max(bisect_right(self.stretches, low, key=attrgetter("first")) - 1, 0)
        for stretch in self.stretches[at:]:
            if stretch.first >= high:
                break
            begin, end = max(stretch.first, low), min(stretch.first + len(stretch.state), high)
            if begin < end:
                whole[begin - low : end - low] = getattr(stretch, name)[begin - stretch.first : end - stretch.first]
        return whole


def walk(trace: Trace, *, pipes: bool = False) -> Walk:
    """The whole connection; with the pipe after every event it takes half as long again."""
    return _Walker(trace, pipes).run()


def _eventful(trace: Trace) -> tuple[Ints, Ints]:
    """(events that begin a stretch, how many ACKs came before each), ascending.

    They are new SACK information, a duplicate ACK, a retransmission.
    """
    data, acks = trace.data, trace.acks
    again = np.flatnonzero(data.retrans)
    if trace.sack:
        informing = trace.sacks[trace.sack_tops > acks.una[trace.sacks]]
    else:
        before = np.concatenate([[trace.start], acks.una])[:-1]
        informing = np.flatnonzero((acks.number == before) & (acks.length == 0))
    sent = trace.data_before(informing)
    waiting = trace.nxts_after(sent) > acks.una[informing]
    waiting &= (informing + sent > 0) | trace.sack  # the first event of all repeats nothing
    acks_before = np.concatenate([trace.acks_before(again), informing[waiting]])
    events = acks_before + np.concatenate([again, sent[waiting]])
    order = np.argsort(events)
    return events[order], acks_before[order]


@dataclass
class _Walker:
    trace: Trace
    pipes: bool
    board: Scoreboard = field(default_factory=Scoreboard)
    state: int = OPEN
    una: int = 0
    nxt: int = 0
    sent: int = 0
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
        starts, acks_before = _eventful(trace)
        stretches: list[Stretch] = []
        at = 0
        while True:
            following = int(np.searchsorted(starts, at))
            if following == len(starts):
                break
            at = int(starts[following])
            self._begin(at, int(acks_before[following]))
            quiet, length = False, _FIRST_CHUNK
            while at < len(trace) and not quiet:
                followed, quiet = self._chunk(trace.part(at, min(at + length, len(trace))))
                length = min(2 * length, _CHUNK)
                stretches.append(Stretch(at, *np.array(followed, np.int64).T))
                at += len(followed)
        return Walk(trace, stretches, self.episodes, self.timed, self.pipes)

    def _begin(self, at: int, acks: int) -> None:
        """Set snd.una and snd.nxt for the stretch that begins after this number of ACKs."""
        self.sent = at - acks
        self.una, self.nxt = self.trace.una_after(acks), self.trace.nxt_after(self.sent)
        self.dups, self.first_dup, self.head_ns = 0, -1, -1
        last = self.trace.event_of_ack(acks - 1) if acks else -1
        self.last_ack = last if last >= at - _CHUNK else -1

    def _chunk(self, part: Part) -> tuple[list[tuple[int, int, int]], bool]:
        """(sacked, pipe, state) after each event, up to the end or to where nothing is missing any more."""
        followed = []
        columns = (part.is_ack, part.seq, part.end, part.again, part.number, part.plain, part.top, part.at)
        for event, (is_ack, seq, end, again, number, plain, top, at) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True), part.first
        ):
            if is_ack:
                self._ack(event, number, plain, top, at)
            else:
                if again:
                    self._again(event, seq, end)
                self.nxt = max(self.nxt, end)
                self.sent += 1
            followed.append((self.board.total, self._pipe() if self.pipes else 0, self.state))
            if self.state == OPEN and not self.dups:
                return followed, True
        return followed, False

    def _ack(self, event: int, number: int, plain: bool, top: int, at: int) -> None:
        advanced = number > self.una
        duplicate = plain and not self.trace.sack and number == self.una < self.nxt
        duplicate &= self.last_ack >= 0 or self.trace.from_start
        again = 0
        if advanced:
            if self.state in (RECOVERY, LOSS) and number >= self.episodes[-1].point:
                again = self.high_rxt
                self._leave(event, "ack")
            self.una = number
            self.board.advance(number)
            self.dups, self.first_dup, self.head_ns = 0, -1, -1
        blocks = self.trace.edges(at) if top > self.una else []
        newly_sacked = sum(self.board.add(max(low, self.una), high) for low, high in blocks if high > self.una)
        if newly_sacked or duplicate:
            self.first_dup = event if self.first_dup < 0 else self.first_dup
            self.dups += 1
        self.last_ack = event
        if self.una < again and self.trace.from_start and self.board.below(again) < again - self.una:
            # Lost and sent again beyond the point that was to be recovered: Linux begins anew on the same ACK.
            self._enter(event)
            self.high_rxt = again
        if self.state in (OPEN, DISORDER):
            self.state = DISORDER if self.board.total or self.dups else OPEN

    def _leave(self, event: int, by: str) -> None:
        episode = self.episodes[-1]
        episode.exit, episode.exited_by, episode.pipe_exit = event, by, self._pipe()
        self.state, self.high_rxt, self.lost_below = OPEN, 0, 0

    def _again(self, event: int, seq: int, end: int) -> None:
        doubt = bool(self.board.total or self.dups or self.state in (RECOVERY, LOSS))
        by = self.timers.sent_by(self.sent, event, self.una, self.nxt, self.head_ns, doubt, self.state)
        if by != "ack":
            self.timed.append(Timed(event, int(self.trace.data.row[self.sent]), by, self.timers.ran_ns))
        if by == "tlp":
            return
        if by == "rto":
            self._timeout(event)
        elif self.state == OPEN and self._smaller(seq):
            self._enter(event)
            self.episodes[-1].entered_by = "path_mtu"
            self.state = LOSS
        elif self.state in (OPEN, DISORDER):
            self._enter(event)
        elif self.state == LOSS and seq < self.high_rxt:
            # The retransmission was lost, too (FLAG_LOST_RETRANS of tcp_fastretrans_alert()).
            self._leave(event, "ack")
            self._enter(event)
        self.high_rxt = max(self.high_rxt, end)
        if seq <= self.una:
            self.head_ns = int(self.trace.data.time_ns[self.sent])

    def _smaller(self, seq: int) -> bool:
        """Whether this departure repeats the first part of a larger packet: an ICMP message, and no ACK and no timer,
        lets that go (tcp_simple_retransmit())."""
        data = self.trace.data
        first = int(np.searchsorted(data.nxt, seq, side="right"))
        sizes = [-(-int(data.length[at]) // max(int(data.segs[at]), 1)) for at in (first, self.sent)]
        return seq <= self.una and sizes[1] < sizes[0]

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
