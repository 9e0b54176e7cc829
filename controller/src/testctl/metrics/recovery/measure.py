# SPDX-License-Identifier: Apache-2.0
"""The numbers of one recovery."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from testctl.metrics.core.latencies import lost_packets
from testctl.metrics.core.matching import wire
from testctl.metrics.core.memo import once
from testctl.metrics.core.view import FlowView
from testctl.metrics.recovery.ack_responses import Answers, answers, longest_run
from testctl.metrics.recovery.capture_gaps import ENDS, NO_SACK, Unsure, limit
from testctl.metrics.recovery.scoreboard import Scoreboard
from testctl.metrics.recovery.state_machine import Episode, Walk
from testctl.metrics.recovery.trace import Trace
from testctl.metrics.recovery.trace_part import Part
from testctl.metrics.recovery.window import NOWHERE, smallest_window, window_at_exit
from testctl.records.schema import Array, Ints


@dataclass
class Recovery:
    """A row of the table; RECOVERIES describes the fields."""

    flow: str
    conn: int
    entered_by: str
    exited_by: str
    limit: str
    first_dup_row: int
    entry_row: int
    first_retrans_row: int
    exit_row: int
    first_dup_ns: int
    entry_ns: int
    exit_ns: int
    sent: str = ""
    sent_first_round: str = ""
    una: int = -1
    point: int = -1
    flight_bytes: int = -1
    mss: int = -1
    dup_acks: int = -1
    acks: int = -1
    segments_sent: int = -1
    new_segments: int = -1
    first_new_ns: int = -1
    retransmissions: int = -1
    burst_max: int = -1
    silence_ns: int = -1
    silent_acks: int = -1
    prr_delivered: int = -1
    prr_out: int = -1
    prr_over: int = -1
    lost_retransmissions: int = -1
    resent: int = -1
    timeouts: int = -1
    pipe_entry: int = -1
    pipe_exit: int = -1
    cwnd_min: int = -1
    cwnd_exit: int = -1
    ssthresh: int = -1
    window_source: str = NOWHERE

    @property
    def fast(self) -> bool:
        """Whether ACKs let it begin, not a timeout or an ICMP message."""
        return self.entered_by in ("dupacks", "early")

    @property
    def measured(self) -> bool:
        """Whether its numbers are known, at least up to where the capture ends."""
        return self.mss > 0

    @property
    def length_ns(self) -> int:
        """Time in recovery; -1 when its end was not captured."""
        return self.exit_ns - self.entry_ns if self.exit_ns >= 0 else -1

    @property
    def excess_window(self) -> int | None:
        """cwnd - ssthresh at the exit, in segments; None when unknown."""
        return self.cwnd_exit - self.ssthresh if self.window_source != NOWHERE else None


def measure(walk: Walk, episode: Episode, gaps: list[Unsure]) -> Recovery:
    """The row of an episode; gaps: where the capture can't be trusted."""
    trace = walk.trace
    ended = episode.exit >= 0
    stop = episode.exit if ended else len(trace)
    why = limit(gaps, episode.first_dup, min(stop, len(trace) - 1))
    seen = trace.part(min(episode.first_dup, episode.entry), min(stop + 1, len(trace)))
    row, time_ns = (partial(_at, column, seen.first) for column in (seen.row, seen.time_ns))
    recovery = Recovery(
        flow=trace.flow.name,
        conn=trace.conn,
        entered_by=episode.entered_by,
        exited_by=episode.exited_by,
        limit=why,
        first_dup_row=row(episode.first_dup),
        entry_row=row(episode.entry),
        first_retrans_row=row(episode.first_retrans),
        exit_row=row(episode.exit) if ended else -1,
        first_dup_ns=time_ns(episode.first_dup),
        entry_ns=time_ns(episode.entry),
        exit_ns=time_ns(episode.exit) if ended else -1,
    )
    if why:
        return recovery
    limits = [] if ended else [ENDS]
    sent = answers(seen.part(episode.first_dup, stop), walk.by_timer)
    inside = seen.part(episode.entry, stop)
    recovery.una, recovery.point, recovery.mss = episode.una, episode.point, trace.mss
    recovery.flight_bytes = episode.flight
    recovery.dup_acks, recovery.timeouts = episode.dup_acks, episode.timeouts + (episode.exited_by == "timeout")
    recovery.sent = sent.letters
    recovery.sent_first_round = sent.part(episode.first_dup, _second_round(seen.part(episode.first_dup, stop))).letters
    end_ns = recovery.exit_ns if ended else trace.last_ns
    answered = sent.part(episode.entry, stop)
    _sending(recovery, inside, answered, end_ns)
    if trace.sack:
        _conservation(recovery, walk, inside, answered)
        recovery.pipe_entry, recovery.pipe_exit = episode.pipe_entry, episode.pipe_exit
    else:
        limits.append(NO_SACK)
    _again(recovery, trace, episode, seen, inside)
    recovery.cwnd_min = smallest_window(walk, recovery.entry_ns, end_ns)
    window = window_at_exit(walk, episode, inside, recovery.exit_ns) if trace.sack else None
    if window is not None:
        recovery.cwnd_exit, recovery.ssthresh, recovery.window_source = window
    recovery.limit = "; ".join(limits)
    return recovery


def _at(column: Array, first: int, event: int) -> int:
    return int(column[event - first])


def _sending(recovery: Recovery, inside: Part, answered: Answers, end_ns: int) -> None:
    """What was sent, in which bursts, with which silences."""
    recovery.acks = len(answered.acks)
    recovery.segments_sent = int(inside.segs.sum())
    recovery.retransmissions = int(inside.segs[inside.again].sum())
    recovery.new_segments = recovery.segments_sent - recovery.retransmissions
    new = inside.time_ns[(inside.segs > 0) & ~inside.again]
    recovery.first_new_ns = int(new[0]) - recovery.entry_ns if len(new) else -1
    recovery.burst_max = int(answered.total.max(initial=0))
    recovery.silent_acks = longest_run(answered.total == 0)
    moments = inside.time_ns[inside.segs > 0]
    recovery.silence_ns = int(np.diff(np.concatenate([[recovery.entry_ns], moments, [end_ns]])).max())


def _second_round(since: Part) -> int:
    """The first ACK of something sent after the first duplicate ACK (the first event), or of a retransmission."""
    later = (since.top > since.nxt[0]) | (since.una > since.una[0])
    recovery = np.flatnonzero(since.is_ack & later)
    return since.first + (int(recovery[0]) if len(recovery) else len(since))


def _conservation(recovery: Recovery, walk: Walk, inside: Part, answered: Answers) -> None:
    """prr_delivered and prr_out (RFC 6937, section 3)."""
    first, stop = inside.first, inside.first + len(inside)
    before = int(walk.delivered(first - 1, first)[0]) if first else walk.trace.start
    if len(answered.acks):
        last = np.append(answered.acks[1:], stop) - 1
        out = np.cumsum(inside.payload)[last - first]
        got = walk.delivered(first, stop)[answered.acks - first] - before
        recovery.prr_delivered, recovery.prr_out = int(got[-1]), int(out[-1])
        recovery.prr_over = int((out - 2 * got).max())


def _again(recovery: Recovery, trace: Trace, episode: Episode, seen: Part, inside: Part) -> None:
    """Retransmissions that were lost, and those sent once more."""
    events = np.flatnonzero(inside.again) + inside.first
    ended_by = [episode.exit] if episode.exited_by == "timeout" else []
    covered = Scoreboard()
    seq, end = (partial(_at, column, seen.first) for column in (seen.seq, seen.end))
    recovery.resent = sum(covered.add(seq(event), end(event)) == 0 for event in (*events.tolist(), *ended_by))
    if len(trace.flow.arrived):
        lost, again = _lost_rows(trace.flow), inside.row[inside.again]
        among_lost = np.searchsorted(lost, again, side="right") > np.searchsorted(lost, again)
        recovery.lost_retransmissions = int(among_lost.sum())


@once
def _lost_rows(flow: FlowView) -> Ints:
    """The rows of departures that never arrived, ascending."""
    return np.unique(flow.sent.index[wire(flow).row[lost_packets(flow)]])
