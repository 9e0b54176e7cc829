# SPDX-License-Identifier: Apache-2.0
"""What a sender knows of each piece of what it sent: when it was transmitted, and when it was acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testctl.records.rows import search
from testctl.records.schema import ACK, RST, SYN, Bools, Ints
from testctl.rules.core.arrivals import APART, changes
from testctl.rules.core.rows import Rows

_SAMPLES = 96
"""RTT samples that an estimate is made of: those before weigh less than 1e-5."""
_STAMP_NS = 1_000_000
"""A tick of timestamps."""
_TIMER_NS = 100_000_000
"""Before which no retransmission timer runs out."""


@dataclass
class Scoreboard:
    """Pieces of the sequence space, which begin and end where packets, ACKs and SACK blocks do.

    Rows are the rows of the trace; a value of a row held just before it.  -1: no such row.
    """

    trace: Rows

    @cached_property
    def sent(self) -> Bools:
        """Packets that leave and take numbers: data, SYN and FIN."""
        return np.asarray(self.trace.out & (self.trace.end > self.trace["seq"]) & ~self.trace.has(RST))

    @cached_property
    def acks(self) -> Bools:
        """ACKs that arrive."""
        return np.asarray(~self.trace.out & self.trace.has(ACK) & ~self.trace.has(RST))

    @cached_property
    def again(self) -> Bools:
        """Retransmissions of data and FIN."""
        return np.asarray(self.sent & ~self.trace.has(SYN) & (self.trace["seq"] < self.trace.nxt))

    @cached_property
    def resent(self) -> Bools:
        """Rows before which something had been sent again."""
        return np.asarray(self.trace.latest(self.again) >= 0)

    @cached_property
    def blocks(self) -> tuple[Ints, Ints, Ints]:
        """(rows, start, end) of SACK blocks; of blocks with the same start what the later of them adds."""
        trace = self.trace
        rows, starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for number in range(1, 5):
            at, start, end = (column for column in trace.blocks(number, self.acks))
            some = end > start
            rows.append(at[some])
            starts.append((start + trace.apart[at])[some])
            ends.append((end + trace.apart[at])[some])
        row, start, end = np.concatenate(rows), np.concatenate(starts), np.concatenate(ends)
        order = np.lexsort((row, start))
        row, start, end = row[order], start[order], end[order]
        if not len(row):
            return row, start, end
        begins = np.append(True, start[1:] != start[:-1])
        lift = np.cumsum(begins) * (int((end - start).max()) + 1)  # which no block is as long as
        running = np.maximum.accumulate(end - start + lift) - lift + start
        known = np.where(begins, start, np.append(0, running[:-1]))
        new = end > known
        return row[new], known[new], end[new]

    @cached_property
    def _ack_to(self) -> Ints:
        """SND.UNA with what the row brings, apart between connections, so that it never falls."""
        trace = self.trace
        now = np.where(self.acks, trace["ack"], -1)
        return np.maximum.accumulate(np.maximum(now, np.maximum(trace.una, -1)) + self.trace.apart)

    @cached_property
    def edges(self) -> Ints:
        trace = self.trace
        _, start, end = self.blocks
        seq, last = (trace["seq"] + self.trace.apart)[self.sent], (trace.end + self.trace.apart)[self.sent]
        seq = seq[np.append(True, seq[1:] != last[:-1])[: len(seq)]]  # most begin where the last ended
        edges = np.concatenate([seq, last, start, end, changes(self._ack_to)])
        return changes(np.sort(edges, kind="stable"))  # quick: ascending runs

    def _expanded(self, rows: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """(pieces of each range, the range's row for each piece)."""
        low, high = search(self.edges, start), search(self.edges, end)
        sizes = high - low
        offsets = np.cumsum(sizes) - sizes
        return np.arange(int(sizes.sum())) - np.repeat(offsets - low, sizes), np.repeat(rows, sizes)

    @cached_property
    def _transmissions(self) -> Ints:
        """piece * rows + row of each transmission of a piece, sorted."""
        rows = np.flatnonzero(self.sent)
        trace = self.trace
        pieces, at = self._expanded(rows, (trace["seq"] + self.trace.apart)[rows], (trace.end + self.trace.apart)[rows])
        return np.sort(pieces * len(trace) + at, kind="stable")

    @cached_property
    def _delivered(self) -> Ints:
        """For each piece the row of the ACK that acknowledged it first, cumulatively or by SACK; len(trace): none."""
        count, edges = len(self.trace), self.edges
        ends = np.append(edges[1:], edges[-1:])
        at = search(self._ack_to, ends)
        inside = at < count
        inside[inside] = self.trace.apart[at[inside]] // APART == (edges[inside] + APART // 2) // APART
        row = np.where(inside, at, count)
        np.minimum.at(row, *self._expanded(*self.blocks))
        return row

    def _latest(self, pieces: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """(the row of the last transmission of the piece before the row, the number of them)."""
        count, keys = len(self.trace), self._transmissions
        here = search(keys, pieces * count + rows)
        before = here - search(keys, pieces * count)
        last = keys[np.maximum(here - 1, 0)] % max(count, 1) if len(keys) else here
        return np.where(before > 0, last, -1), before

    def transmitted(self, numbers: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """(row of the last transmission of this byte, the number of transmissions of it) before some rows."""
        pieces = search(self.edges, numbers[rows] + self.trace.apart[rows], side="right") - 1
        return self._latest(np.maximum(pieces, 0), rows)

    def delivered_at(self, numbers: Ints, rows: Bools) -> Bools:
        """Rows of the mask at which this byte had been acknowledged, cumulatively or by SACK.

        Of several ACKs of an instant TCP deals with one after the other: the first of them counts.
        """
        trace, at = self.trace, np.flatnonzero(rows)
        begin, before = trace.instant[at], trace.latest(self.acks)
        first = np.where(self.acks[begin], begin, trace.following(self.acks)[begin])
        by = np.where(before[np.maximum(before[at], 0)] >= begin, first + 1, at)
        pieces = search(self.edges, numbers[at] + trace.apart[at], side="right") - 1
        return trace.sparse(at, self._delivered[np.maximum(pieces, 0)] < by)

    @cached_property
    def last_sent(self) -> Ints:
        """For each retransmission the row at which its first byte had been sent last."""
        return self._sent_before(self.trace["seq"])

    @cached_property
    def head_sent(self) -> Ints:
        """For each retransmission the row at which the first byte not acknowledged had been sent last."""
        return self._sent_before(np.maximum(self.trace.una, -1))

    def _sent_before(self, numbers: Ints) -> Ints:
        at = np.flatnonzero(self.again)
        return self.trace.sparse(at, self.transmitted(numbers, at)[0])

    @cached_property
    def _pieces(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Of pieces that were acknowledged: (piece, row of its ACK, row of its last transmission, transmissions)."""
        at = np.flatnonzero(self._delivered < len(self.trace))
        row, times = self._latest(at, self._delivered[at])
        known = row >= 0
        return at[known], self._delivered[at][known], row[known], times[known]

    def _by_ack(self, values: Ints, acks: Ints, empty: int, better: np.ufunc) -> Ints:
        column = np.full(len(self.trace), empty, np.int64)
        better.at(column, acks, values)
        return column

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """For each row (the row of the ACK with which all of the packet was acknowledged, the row at which some of it
        was sent again); len(trace): none.  Where a byte was sent more than once its ACK counts for the last one."""
        count = len(self.trace)
        piece, row = np.divmod(self._transmissions, max(count, 1))
        again, acked = np.full(count, count), np.full(count, -1)
        np.minimum.at(again, row[:-1][piece[1:] == piece[:-1]], row[1:][piece[1:] == piece[:-1]])
        np.maximum.at(acked, row, self._delivered[piece])
        return np.where((acked > np.arange(count)) & (acked < again), acked, count), again

    @cached_property
    def delivered_sent(self) -> Ints:
        """For each retransmission the row of the last packet, by when it was sent, that an ACK had reported: RFC 8985's
        RACK.xmit_ts."""
        _, ack, row, _ = self._pieces
        column = self._by_ack(row, ack, -1, np.maximum)
        return np.maximum(self.trace.highest(column, column >= 0, self.again), -1)

    @cached_property
    def newest(self) -> Ints:
        """Likewise for every row, with what the row brings; -1: nothing was reported.

        What was sent again less than the shortest RTT before may be the original: RFC 8985, 6.2, step 2.
        """
        return self._newest(0)

    @cached_property
    def surely_newest(self) -> Ints:
        """Likewise, where the shortest RTT may be by timestamps, in whole ms rounded either way."""
        return self._newest(_STAMP_NS)

    def _newest(self, more_ns: int) -> Ints:
        _, ack, row, _ = self._pieces
        took, least = self.trace["time_ns"][ack] - self.trace["time_ns"][row], self.rtt_min[ack]
        least = np.where(least % _STAMP_NS == 0, least + more_ns, least)
        sure = ~self.again[row] | (took // 1000 >= least // 1000)
        ack, row = ack[sure], row[sure]
        column = self._by_ack(row, ack, -1, np.maximum)
        return np.maximum(self.trace.highest(column, column >= 0, inclusive=True), -1)

    @cached_property
    def _sizes(self) -> Ints:
        """The numbers of each of `_pieces`."""
        piece = self._pieces[0]
        return np.asarray(self.edges[np.minimum(piece + 1, len(self.edges) - 1)] - self.edges[piece])

    def _delivered_before(self, amounts: Ints) -> Ints:
        """The sum of these, of `_pieces`, that ACKs had acknowledged before each row."""
        column = np.zeros(len(self.trace), np.int64)
        np.add.at(column, self._pieces[1], amounts)
        return self.trace.count(column, column > 0)

    @cached_property
    def delivered_bytes(self) -> Ints:
        """Numbers, counted from the SYN's, that ACKs had acknowledged cumulatively or by SACK."""
        return self._delivered_before(self._sizes)

    @cached_property
    def delivered_segments(self) -> Ints:
        """Segments, in the sizes in which they were sent, that ACKs had acknowledged, the row included."""
        trace, (_, ack, row, _) = self.trace, self._pieces
        size = -(-(trace.end - trace["seq"])[row] // np.maximum(trace["segs"][row], 1))
        column = np.zeros(len(trace), np.int64)
        np.add.at(column, ack, -(-self._sizes // np.maximum(size, 1)))
        return trace.count(column, column > 0) + column

    @cached_property
    def sacked_segments(self) -> Ints:
        """For each retransmission the segments above SND.UNA that SACK blocks had reported, in the sizes in which they
        were sent."""
        trace, (piece, _, row, _), again = self.trace, self._pieces, np.flatnonzero(self.again)
        size = -(-(trace.end - trace["seq"])[row] // np.maximum(trace["segs"][row], 1))
        amounts = -(-self._sizes // np.maximum(size, 1))
        below = np.append(0, np.cumsum(amounts))
        to_una, to_first = (
            below[np.searchsorted(self.edges[piece], numbers + trace.apart[again])]
            for numbers in (np.maximum(trace.una[again], -1), np.int64(-1))
        )
        return trace.sparse(again, np.maximum(self._delivered_before(amounts)[again] - (to_una - to_first), 0))

    @cached_property
    def sacked_bytes(self) -> Ints:
        """Bytes above SND.UNA that SACK blocks had reported."""
        return np.maximum(self.delivered_bytes - np.maximum(self.trace.una, -1) - 1, 0)

    @cached_property
    def sack_top(self) -> Ints:
        """The end of the highest SACK block that had arrived; below SND.UNA where nothing is SACKed."""
        top, some = np.zeros(len(self.trace), np.int64), np.zeros(len(self.trace), np.bool_)
        for number in range(1, 5):
            rows, end = self.trace.others(f"sack{number}_end")
            top[rows] = np.maximum(top[rows], end)
            some[rows] |= end >= 0
        return self.trace.highest(top, self.acks & some)

    @cached_property
    def reneged(self) -> Bools:
        """Rows before which an ACK had its number within a SACK block (RFC 2018, 8): no block counts any more."""
        trace = self.trace
        within = self.acks & (trace["ack"] >= trace.una) & (trace["ack"] < self.sack_top)
        return np.asarray(trace.latest(self.delivered_at(trace["ack"], within)) >= 0)

    @cached_property
    def repeats(self) -> Bools:
        """Duplicate ACKs (RFC 5681, 2)."""
        trace = self.trace
        return np.asarray(self.acks & trace.pure_ack & (trace["ack"] == trace.una) & (trace.nxt > trace.una))

    @cached_property
    def duplicates(self) -> Ints:
        """For each retransmission the duplicate ACKs that had arrived since SND.UNA moved."""
        trace, again = self.trace, np.flatnonzero(self.again)
        moves = self.acks & (trace["ack"] > trace.una)
        total = trace.count(trace["segs"], self.repeats)
        last = trace.latest(moves, self.again)[again]
        return trace.sparse(again, total[again] - np.where(last >= 0, total[last], 0))

    # -- round-trip times ------------------------------------------------------------------------------------------

    @cached_property
    def samples(self) -> Ints:
        """What each row measures of the RTT, in ns; -1: nothing.  Only of what was sent once (Karn's algorithm).

        Of all that an ACK acknowledges, what was sent first counts; nothing if any of it was sent again, as in Linux.
        """
        return self._sampled(np.minimum)

    @cached_property
    def latest_samples(self) -> Ints:
        """Likewise, where what was sent last counts."""
        return self._sampled(np.maximum)

    @cached_property
    def merged(self) -> Bools:
        """Retransmissions of several small segments in one."""
        trace = self.trace
        return np.asarray(
            self.again & (trace["segs"] == 1) & (self.last_sent >= 0) & (trace.end > trace.end[self.last_sent])
        )

    @cached_property
    def rtt_min(self) -> Ints:
        """The shortest RTT measured, in ns; 0: none yet."""
        latest = self._or_stamped(self.latest_samples)
        least = self.trace.highest(-latest, latest >= 0)
        return np.where(least > -(1 << 42), -least, 0)

    def _or_stamped(self, samples: Ints) -> Ints:
        """Where all that is acknowledged was sent again Linux takes the timestamp's RTT, in whole ms."""
        shown = np.where(samples < 0, self._echoes, -1)
        return np.where(shown >= 0, np.maximum(shown // _STAMP_NS, 1) * _STAMP_NS, samples)

    @cached_property
    def rtt_max(self) -> Ints:
        """The longest RTT measured, in ns; 0: none yet."""
        return np.maximum(self.trace.highest(self.samples, self.samples >= 0), 0)

    @cached_property
    def rtt_echoed(self) -> Ints:
        """The longest RTT that ACKs of what was sent again showed, by their timestamps or by SACKs of what was sent
        once (tcp_ack_update_rtt()), in ns; 0: none yet."""
        shown = np.maximum(self._echoes, self._sampled(np.minimum, karn=False))
        return np.maximum(self.trace.highest(shown, shown >= 0), 0)

    @cached_property
    def _echoes(self) -> Ints:
        """For ACKs of new data the time since what they echo was sent first, be it lost or sent again (RFC 7323, 4),
        in ns; -1 of other rows."""
        trace, time = self.trace, self.trace["time_ns"]
        first = trace.reached(trace.stamp, trace.out & (trace["tsval"] >= 0), trace.echo)
        shows = self.acks & (trace["ack"] > trace.una) & (trace["tsecr"] >= 0)
        shows &= (first >= 0) & (first < np.arange(len(trace)))
        return np.where(shows, time - time[np.maximum(first, 0)], -1)

    def _sampled(self, better: np.ufunc, *, karn: bool = True) -> Ints:
        piece, ack, row, times = self._pieces
        again = np.append(self._of_resent, np.False_)
        again[ack[times > 1]] = True
        once = ~again[ack]
        if not karn:
            once |= (times == 1) & (self.edges[piece] >= (self.trace["ack"] + self.trace.apart)[ack])
        count = len(self.trace)
        first = self._by_ack(row[once], ack[once], count if better is np.minimum else -1, better)
        some = (first >= 0) & (first < count)
        time, rows, result = self.trace["time_ns"], np.flatnonzero(some), np.full(count, -1)
        result[rows] = time[rows] - time[first[rows]]
        return result

    @property
    def _of_resent(self) -> Bools:
        """ACKs whose number passes what was sent again, also where a SACK block had reported it."""
        trace, piece = self.trace, self._transmissions // max(len(self.trace), 1)
        below = np.append(0, np.cumsum(np.bincount(piece, minlength=len(self.edges)) > 1))
        una, ack = (below[search(self.edges, numbers + trace.apart)] for numbers in (trace.una, trace["ack"]))
        return np.asarray(self.acks & (trace["ack"] > trace.una) & (ack > una))

    @cached_property
    def _stamped_samples(self) -> Ints:
        return self._or_stamped(self.samples)

    def estimate(self, row: int) -> tuple[float, float]:
        """(SRTT, RTTVAR) before a row by RFC 6298, 2, in ns; (0, 0) without a sample.  As in Linux, RTTVAR grows by an
        eighth as much while the RTT falls (tcp_rtt_estimator())."""
        before = self._stamped_samples[self.trace.first[row] : row]
        values = before[before >= 0][-_SAMPLES:].tolist()
        if not values:
            return 0.0, 0.0
        srtt, rttvar = float(values[0]), values[0] / 2
        for value in values[1:]:
            more = (abs(srtt - value) - rttvar) / 4
            rttvar += more / 8 if value < srtt and more > 0 else more
            srtt += (value - srtt) / 8
        return srtt, rttvar

    # -- why something is sent again -------------------------------------------------------------------------------

    @cached_property
    def evidence(self) -> Bools:
        """Retransmissions after ACKs that speak of a loss, however little; the others are by a timer, or wrong.

        Data above has been SACKed, data sent later has been acknowledged, or three duplicate ACKs came.
        """
        trace = self.trace
        sacked = self.sack_top > trace["seq"]
        overtaken = (self.last_sent >= 0) & (self.delivered_sent > self.last_sent)
        loss = sacked | overtaken | self.without_sack | (self.duplicates >= 3)
        return np.asarray(self.again & (loss | (self.last_sent < 0)))

    @cached_property
    def without_sack(self) -> Bools:
        """Retransmissions, in connections without SACK, after three duplicate ACKs since that segment was sent last,
        as a partial ACK of a recovery repeats (RFC 6582)."""
        trace = self.trace
        rows, _ = trace.others("sack1_end")
        plain = self.again & ~trace.anywhere(trace.sparse(rows, self.acks[rows]))
        repeats = trace.count(trace["segs"], self.repeats) if plain.any() else np.zeros(len(trace), np.int64)
        return np.asarray(plain & (self.last_sent >= 0) & (repeats - repeats[self.last_sent] >= 3))

    @cached_property
    def alone(self) -> Bools:
        """Retransmissions without such ACKs, those left out that a timeout before has begun (RFC 6298, 5.4)."""
        alone = self.again & ~self.evidence
        return np.asarray(alone & ~(self.trace["seq"] < self._lost_to(alone)))

    @cached_property
    def by_timer(self) -> Bools:
        """Likewise, where no duplicate ACK has caused them."""
        return np.asarray(self.alone & ~self.answers)

    @cached_property
    def answers(self) -> Bools:
        """Retransmissions at once upon a duplicate ACK, or less than a round trip after it, as pacing delays them."""
        trace, time = self.trace, self.trace["time_ns"]
        last = trace.latest(self.repeats, self.again)
        soon = (last >= 0) & (time - time[last] < self.rtt_min) & (self.waited < _TIMER_NS) & ~self.tail
        return np.asarray(self.again & (soon | (last >= trace.instant)))

    def _lost_to(self, alone: Bools) -> Ints:
        """SND.NXT at the last timeout: all below it may be sent again; that which is first is sent by the timer."""
        trace = self.trace
        head = alone & (trace["seq"] <= trace.una) & (self.waited >= _TIMER_NS)
        reached = trace.highest(trace.nxt, head)
        repeated = trace["seq"] <= trace.una
        return np.where(repeated, -1, reached)

    @cached_property
    def waited(self) -> Ints:
        """For each retransmission how long ago, in ns, its first byte was sent last; 0: never, or none."""
        time, again = self.trace["time_ns"], np.flatnonzero(self.again)
        last = self.last_sent[again]
        return self.trace.sparse(again, np.where(last >= 0, time[again] - time[last], 0))

    @cached_property
    def tail(self) -> Bools:
        """Retransmissions of the end of what was sent, which may be a tail loss probe; of its last piece up to the
        peer's window, where that was taken back."""
        trace = self.trace
        offer = trace.latest(self.acks)
        cut = (self.last_sent >= 0) & (trace.end[self.last_sent] >= trace.nxt) & (offer >= 0)
        return np.asarray(self.again & ((trace.end >= trace.nxt) | cut & (trace.end == trace.limit[offer])))

    @cached_property
    def head(self) -> Bools:
        """Retransmissions of the first byte not acknowledged."""
        return np.asarray(self.again & (self.trace["seq"] <= np.maximum(self.trace.una, 0)))
