# SPDX-License-Identifier: Apache-2.0
"""The packets of a flow at one of its ends, and the state of the connection at each of them.

Rows are ordered by connection and then as captured.  The state at a row (`una`, `nxt`, …) is the one just before it.
Numbers are bytes relative to the connection's first data byte of the direction in question.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from testctl.records import Records
from testctl.records.schema import ACK, FIN, RARE_COLUMNS, RST, SYN, Array, Bools, Ints, numbers_of
from testctl.rules.core.arrivals import APART, Arrivals
from testctl.rules.core.native import run

NEVER = -(1 << 42)
"""What no number of a connection is: nothing of the kind came before."""
_HALF = 1 << 31
"""Timestamps have 32 bits: one that is that much lower is higher (RFC 7323, 5.2)."""


def _ints(values: Array) -> Ints:
    return np.asarray(values, np.int64)


@dataclass
class Rows:
    """The packets that `host` sent and received of a flow; `index` are their rows in the packets table.

    direction  of what the host sends: 0 from -> to
    """

    records: Records
    flow: str
    host: str
    direction: int
    index: Ints
    memo: dict[str, Array] = field(default_factory=dict, repr=False)
    made: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, name: str) -> Array:
        """A column of the packets table, of its type; one that has the usual value everywhere takes no memory."""
        if name not in self.memo:
            self.memo[name] = self._rare(name, RARE_COLUMNS[name]) if name in RARE_COLUMNS else self._column(name)
        return self.memo[name]

    def _rare(self, name: str, usual: int) -> Array:
        rows, values = self.others(name)
        if not len(rows):
            return np.broadcast_to(np.int64(usual), len(self))
        column = np.full(len(self), usual, np.int64)
        column[rows] = values
        return column

    def _column(self, name: str) -> Array:
        order, packets = self._order, self.records.packets
        if order is not None:
            values = self.records.values(name, self.index[order])
            column = np.empty_like(values)
            column[order] = values
            return column
        adjacent = len(self) and self.index[-1] - self.index[0] == len(self) - 1
        if adjacent and not self.records.in_parts and packets.column(name).num_chunks == 1:
            return numbers_of(packets, name)[self.index[0] : self.index[-1] + 1]  # no copy
        return self.records.values(name, self.index)

    def others(self, name: str) -> tuple[Ints, Array]:
        """(rows that have another number than the usual one in a column of RARE_COLUMNS, ascending, these numbers)."""
        if (key := (name, "others")) not in self.made:
            order = self._order
            at = self.index if order is None else self.index[order]
            rows, values = self.records.others(name, at, RARE_COLUMNS[name])
            if order is not None and len(rows):
                rows = order[rows]
                sort = np.argsort(rows)
                rows, values = rows[sort], values[sort]
            self.made[key] = rows, values
        rare: tuple[Ints, Array] = self.made[key]
        return rare

    @cached_property
    def _order(self) -> Ints | None:
        """What sorts `index`; None where it is ascending, as with a single connection."""
        return None if (self.index[1:] > self.index[:-1]).all() else np.argsort(self.index, kind="stable")

    def forget(self) -> None:
        """Forget all but the rows; other values are computed again where they are needed."""
        kept = {field.name for field in fields(self)}
        for name in set(vars(self)) - kept:
            del vars(self)[name]
        self.memo.clear()
        self.made.clear()

    def blocks(self, number: int, of: Bools) -> tuple[Ints, Ints, Ints]:
        """(rows of the mask that have a SACK block at this place of their option, from 1, its start, its end)."""
        (rows, start), (ends, end) = self.others(f"sack{number}_start"), self.others(f"sack{number}_end")
        there = of[rows] & (start >= 0)
        rows, start = rows[there], start[there]
        if not len(ends):
            return rows, start, np.full(len(rows), -1)
        at = np.minimum(np.searchsorted(ends, rows), len(ends) - 1)
        return rows, start, np.where(ends[at] == rows, end[at], -1)

    def sparse(self, rows: Ints, values: Array) -> Array:
        """A column of these values at some rows, and 0 at all others, which take no memory."""
        column = np.zeros(len(self), values.dtype)
        column[rows] = values
        return column

    # -- what a row is ---------------------------------------------------------------------------------------------

    @cached_property
    def out(self) -> Bools:
        """Leaving the host (the others arrive)."""
        return self["out"]

    @cached_property
    def end(self) -> Ints:
        """The number behind the last that the packet takes: SYN and FIN take one each."""
        taken = self["length"] + self.has(FIN) + self.has(SYN)
        return np.asarray(self["seq"] + taken)

    def has(self, flag: int) -> Bools:
        """Rows with this TCP flag (of records.schema)."""
        if (key := f"flag {flag}") not in self.memo:
            self.memo[key] = np.asarray((self["flags"] & flag) != 0)
        return self.memo[key]

    @cached_property
    def stamp(self) -> Ints:
        """TSval, which counts on where its 32 bits wrap; of RSTs as it is there.

        A step up of half of them leads back to before a wrap; without one, as from the 0 of a SYN, it is a step up.
        """
        value = self["tsval"]
        for out in (True, False):
            counted = (self.out == out) & (value >= 0) & ~self.has(RST)
            rows = np.flatnonzero(counted)
            step = np.diff(value[rows])
            step[self.first[rows[1:]] != self.first[rows[:-1]]] = 0
            if (step <= -_HALF).any():
                sums = np.append(0, np.cumsum((step <= -_HALF).astype(np.int64) - (step >= _HALF)))
                wraps = np.zeros(len(self), np.int64)
                wraps[rows] = sums - sums[np.searchsorted(rows, self.first[rows])]
                wraps += np.maximum(self.highest(-wraps, counted, inclusive=True), 0)
                value = value.astype(np.int64) if value is self["tsval"] else value
                value[rows] += wraps[rows] * 2 * _HALF
        return value

    @cached_property
    def echo(self) -> Ints:
        """TSecr, as `stamp` counts: near the highest TSval of the other end."""
        stamps, echo = self.stamp, self["tsecr"]
        if stamps is self["tsval"]:
            return echo
        stamped = (self["tsval"] >= 0) & ~self.has(RST)
        arrived, sent = (self.highest(stamps, stamped & (self.out == out)) for out in (False, True))
        near = np.where(self.out, arrived, sent)
        known = (near > NEVER) & (echo >= 0)
        return np.where(known, near + (echo - near + _HALF) % (2 * _HALF) - _HALF, echo)

    @cached_property
    def data(self) -> Bools:
        """Rows with payload."""
        return np.asarray(self["length"] > 0)

    @cached_property
    def pure_ack(self) -> Bools:
        """ACKs that carry nothing: no payload, SYN, FIN or RST."""
        return np.asarray(self.has(ACK) & ~self.data & ((self["flags"] & (SYN | FIN | RST)) == 0))

    @cached_property
    def acks(self) -> Bools:
        """Packets that leave with an ACK number, but for resets."""
        return np.asarray(self.out & self.has(ACK) & ~self.has(RST))

    @cached_property
    def first(self) -> Ints:
        """For each row the first row of its connection."""
        return self._spread(self._firsts)

    @cached_property
    def _begins(self) -> Bools:
        conn = self["conn"]
        return np.concatenate([np.ones(min(len(conn), 1), np.bool_), conn[1:] != conn[:-1]])

    @cached_property
    def _firsts(self) -> Ints:
        return np.flatnonzero(self._begins)

    def _spread(self, values: Array) -> Array:
        """A value of each connection at each of its rows."""
        if len(values) == 1:
            return np.broadcast_to(values[0], len(self))  # which takes no memory
        return np.repeat(values, np.diff(self._firsts, append=len(self)))

    @cached_property
    def from_syn(self) -> Bools:
        """Rows of connections whose SYNs the host's capture has both: all is here, and windows are scaled."""
        syn = self.has(SYN)
        return np.asarray(self.anywhere(syn & self.out) & self.anywhere(syn & ~self.out))

    def anywhere(self, of: Bools) -> Bools:
        """Rows of connections that have a row of the mask."""
        return np.asarray(self._spread(np.logical_or.reduceat(of, self._firsts))) if len(self) else of

    # -- what held just before a row -------------------------------------------------------------------------------
    # among: the rows for which it is wanted, None for all; the others have any number.

    def highest(self, values: Array, of: Bools, among: Bools | None = None, *, inclusive: bool = False) -> Ints:
        """The highest value of earlier rows of the mask, in the same connection; NEVER without any.

        inclusive: the row itself counts too
        """
        return run("highest", self._begins, among, _ints(values), of, numbers=(NEVER, int(inclusive)))

    def latest(self, of: Bools, among: Bools | None = None) -> Ints:
        """The row of the last earlier row of the mask, in the same connection; -1 without any."""
        return run("latest", self._begins, among, of)

    def following(self, of: Bools, among: Bools | None = None) -> Ints:
        """The row of the next later row of the mask, in the same connection; -1 without any."""
        return run("following", self._begins, among, of)

    def reached(self, values: Array, of: Bools, numbers: Ints, among: Bools | None = None) -> Ints:
        """For each row the first row, earlier or later, of its connection at which a value of the mask was at least
        the row's number; -1 where none was."""
        scratch = np.empty((2, len(self)), np.int64)
        return run("reached", self._begins, among, _ints(values), of, _ints(numbers), scratch, numbers=(NEVER,))

    def count(self, values: Array, of: Bools, among: Bools | None = None) -> Ints:
        """The sum of values over earlier rows of the mask, in the same connection."""
        return run("count", self._begins, among, _ints(values), of)

    def settled(self, values: Ints, within_ns: int, among: Bools | None = None) -> Ints:
        """What a running maximum (NEVER: none yet) had reached at the latest this time before each row: TCP has dealt
        with what came by then."""
        columns = _ints(values), self["time_ns"], np.empty(len(self), np.int64)
        return run("settled", self._begins, among, *columns, numbers=(NEVER, within_ns))

    @cached_property
    def una(self) -> Ints:
        """SND.UNA: the highest acknowledgement number that had arrived."""
        return self.highest(self["ack"], ~self.out & self.has(ACK))

    @cached_property
    def nxt(self) -> Ints:
        """SND.NXT: the end of the highest that had been sent."""
        return self.highest(self.end, self.out)

    @cached_property
    def seen(self) -> Ints:
        """The end of the highest that had arrived, with or without gaps below; an ACK that is ahead brings nothing."""
        return self.highest(self.end, self.taken & ~self.has(RST))

    @cached_property
    def acked(self) -> Ints:
        """The highest acknowledgement number that the host had sent."""
        return self.highest(self["ack"], self.out & self.has(ACK))

    @cached_property
    def edge(self) -> Ints:
        """The right edge of the window that the peer had offered."""
        return self.highest(self.limit, ~self.out & self.has(ACK) & ~self.has(RST) & self.from_syn)

    @cached_property
    def offered(self) -> Ints:
        """The right edge of the window that the host had offered."""
        return self.highest(self.limit, self.acks & self.from_syn)

    @cached_property
    def unit(self) -> int:
        """Bytes that the host's windows are multiples of, since they are scaled (RFC 7323, 2.4)."""
        scaled = int(np.gcd.reduce(self["window"][self.acks & ~self.has(SYN)], initial=0))
        return max(scaled & -scaled, 1)

    @cached_property
    def limit(self) -> Ints:
        """The right edge of the window that the packet itself offers."""
        return np.asarray(self["ack"] + self["window"])

    @cached_property
    def probes(self) -> Bools:
        """Packets that leave to make the peer answer: an empty ACK below what was sent, or a byte beyond the window."""
        empty = self.pure_ack & (self["seq"] < self.nxt)
        byte = (self["length"] == 1) & (self.end > self.edge)
        return np.asarray(self.out & (empty | byte))

    @cached_property
    def taken(self) -> Bools:
        """Rows that bring numbers and begin within the window that the host had offered last, or that its next ACK has:
        TCP drops the others, which come where it has taken a larger window back (tcp_sequence())."""
        brings = ~self.out & (self.end > self["seq"])
        rows = np.flatnonzero(brings & self.from_syn)
        offer, answer = self.latest(self.acks)[rows], self.following(self.acks)[rows]
        has = (answer >= 0) & (self["ack"][answer] > self["seq"][rows])
        brings[rows] = (offer < 0) | (self["seq"][rows] <= self.limit[offer]) | has
        return brings

    @cached_property
    def arrivals(self) -> Arrivals:
        """When each byte arrived first; numbers with `apart` added."""
        rows = np.flatnonzero(self.taken)
        return Arrivals(rows, (self["seq"] + self.apart)[rows], (self.end + self.apart)[rows])

    @cached_property
    def arrived_to(self) -> Ints:
        """RCV.NXT with what the row brings; of other rows as `rcv_nxt`."""
        rows = self.arrivals.rows
        reached = self.sparse(rows, self.arrivals.contiguous() - self.apart[rows])
        came = self.sparse(rows, np.ones(len(rows), np.bool_))
        return self.highest(reached, came, inclusive=True)

    @cached_property
    def rcv_nxt(self) -> Ints:
        """RCV.NXT by what had arrived: all below had, without a gap; NEVER before the peer's SYN."""
        before = np.roll(self.arrived_to, 1)
        before[self._firsts] = NEVER
        return before

    @cached_property
    def below(self) -> Bools:
        """Rows that may bring what had arrived before: they begin below its end; all, where a RST has payload."""
        return np.asarray(~self.out & ((self["seq"] < self.seen) | bool((self.has(RST) & self.data).any())))

    @cached_property
    def repeated(self) -> Bools:
        """Rows whose payload had arrived before, all of it."""
        mask = np.zeros(len(self), np.bool_)
        rows = np.flatnonzero(self.below & self.data)
        start = (self["seq"] + self.apart)[rows]
        mask[rows] = self.arrivals.whole(start, start + self["length"][rows]) < rows
        return mask

    @cached_property
    def refused(self) -> Bools:
        """Rows at which `rcv_nxt` may be above the host's own: it had dropped what it had no memory for.

        Such data is answered by a zero window below what arrived (RFC 9293, 3.8.6), until it comes again.
        """
        full = np.asarray(self.acks & (self["window"] == 0) & (self["ack"] < self.rcv_nxt))
        if not full.any():
            return full
        next_ack = self.following(self.acks)
        causes = (next_ack >= 0) & full[next_ack] & ~self.out
        return np.asarray(full | causes | (self.highest(self.rcv_nxt, full) > self.acked))

    @cached_property
    def exact(self) -> bool:
        """Whether times are virtual: events at the same instant have the same time."""
        return bool(self.records.outcome.wall)

    @property
    def late_capture(self) -> bool:
        """Whether a testbed by the wall clock captured it: a busy machine's TCP is late by any time.  Who analyses a
        capture of their own decides by themselves what to think of a violation."""
        outcome = self.records.outcome
        return not self.exact and (bool(outcome.placement) or not outcome.clocks)

    @cached_property
    def instant(self) -> Ints:
        """For each row the first row of its connection with the same time; of real time within the last ms, which a
        host may take for a packet."""
        return run("instant", self._begins, None, self["time_ns"], numbers=(0 if self.exact else 1_000_000,))

    @cached_property
    def apart(self) -> Ints:
        """Added to a row's numbers so that the numbers of all connections have an order."""
        return self._spread(np.arange(len(self._firsts)) * APART)
