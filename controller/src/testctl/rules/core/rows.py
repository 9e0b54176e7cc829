# SPDX-License-Identifier: Apache-2.0
"""The packets of a flow at one of its ends, and the state of the connection at each of them.

Rows are ordered by connection and then as captured.  The state at a row (`una`, `nxt`, …) is the one just before it.
Numbers are bytes relative to the connection's first data byte of the direction in question.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from testctl.records import Records
from testctl.records.rows import search
from testctl.records.schema import ACK, FIN, RST, SYN, Array, Bools, Ints
from testctl.rules.core.arrivals import APART, Arrivals

NEVER = -(1 << 42)
"""What no number of a connection is: nothing of the kind came before."""


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

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, name: str) -> Array:
        """A column of the packets table; of whole numbers as int64."""
        if name not in self.memo:
            order = np.argsort(self.index, kind="stable")
            column = self.records.values(name, self.index[order])
            values: Array = np.empty(len(column), np.bool_ if column.dtype == np.bool_ else np.int64)
            values[order] = column
            self.memo[name] = values
        return self.memo[name]

    def forget(self) -> None:
        """Forget all but the rows; other values are computed again where they are needed."""
        kept = {field.name for field in fields(self)}
        for name in set(vars(self)) - kept:
            del vars(self)[name]
        self.memo.clear()

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
    def data(self) -> Bools:
        """Rows with payload."""
        return np.asarray(self["length"] > 0)

    @cached_property
    def pure_ack(self) -> Bools:
        """ACKs that carry nothing: no payload, SYN, FIN or RST."""
        return np.asarray(self.has(ACK) & ~self.data & ((self["flags"] & (SYN | FIN | RST)) == 0))

    @cached_property
    def first(self) -> Ints:
        """For each row the first row of its connection."""
        return self._firsts[self._group]

    @cached_property
    def _begins(self) -> Bools:
        conn = self["conn"]
        return np.concatenate([np.ones(min(len(conn), 1), np.bool_), conn[1:] != conn[:-1]])

    @cached_property
    def _firsts(self) -> Ints:
        return np.flatnonzero(self._begins)

    @cached_property
    def _group(self) -> Ints:
        return np.cumsum(self._begins) - 1

    @cached_property
    def from_syn(self) -> Bools:
        """Rows of connections whose SYNs the host's capture has both: all is here, and windows are scaled."""
        syn = self.has(SYN)
        return np.asarray(self.anywhere(syn & self.out) & self.anywhere(syn & ~self.out))

    def anywhere(self, of: Bools) -> Bools:
        """Rows of connections that have a row of the mask."""
        some = np.zeros(len(self._firsts), np.bool_)
        some[self._group[of]] = True
        return np.asarray(some[self._group])

    # -- what held just before a row -------------------------------------------------------------------------------

    def highest(self, values: Array, of: Bools) -> Ints:
        """The highest value of earlier rows of the mask, in the same connection; NEVER without any."""
        if not of.any():
            return np.full(len(self), NEVER)
        apart = self._group * APART
        running = np.maximum.accumulate(np.where(of, values, NEVER) + apart) - apart
        return self._before(running)

    def latest(self, of: Bools) -> Ints:
        """The row of the last earlier row of the mask, in the same connection; -1 without any."""
        if not of.any():
            return np.full(len(self), -1)
        before = np.append(-1, np.flatnonzero(of))[np.cumsum(of) - of]
        return np.where(before >= self.first, before, -1)

    def following(self, of: Bools) -> Ints:
        """The row of the next later row of the mask, in the same connection; -1 without any."""
        if not of.any():
            return np.full(len(self), -1)
        after = np.append(np.flatnonzero(of), len(self))[np.cumsum(of)]
        inside = (after < len(self)) & (self._group[np.minimum(after, len(self) - 1)] == self._group)
        return np.where(inside, after, -1)

    def reached(self, values: Array, of: Bools, numbers: Ints) -> Ints:
        """For each row the first row, earlier or later, of its connection at which a value of the mask was at least
        the row's number; -1 where none was."""
        if not of.any():
            return np.full(len(self), -1)
        apart = self._group * APART
        running = np.maximum.accumulate(np.where(of, values, NEVER) + apart)
        rows = search(running, np.maximum(numbers, NEVER + 1) + apart)
        inside = rows < len(self)
        inside[inside] = self._group[rows[inside]] == self._group[inside]
        return np.where(inside, rows, -1)

    def count(self, values: Array, of: Bools) -> Ints:
        """The sum of values over earlier rows of the mask, in the same connection."""
        if not of.any():
            return np.zeros(len(self), np.int64)
        total = np.cumsum(np.where(of, values, 0))
        before = np.concatenate([[0], total[:-1]])
        return np.asarray(before - before[self.first])

    def _before(self, running: Ints) -> Ints:
        """What a running maximum was before each row."""
        before = np.concatenate([[NEVER], running[:-1]]) if len(self) else running
        return np.where(self._begins, NEVER, before)

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
        """The end of the highest that had arrived, with or without gaps below."""
        return self.highest(self.end, ~self.out & ~self.has(RST))

    @cached_property
    def acked(self) -> Ints:
        """The highest acknowledgement number that the host had sent."""
        return self.highest(self["ack"], self.out & self.has(ACK))

    @cached_property
    def edge(self) -> Ints:
        """The right edge of the window that the peer had offered."""
        return self.highest(self["ack"] + self["window"], ~self.out & self.has(ACK) & ~self.has(RST) & self.from_syn)

    @cached_property
    def offered(self) -> Ints:
        """The right edge of the window that the host had offered."""
        return self.highest(self["ack"] + self["window"], self.out & self.has(ACK) & ~self.has(RST) & self.from_syn)

    @cached_property
    def probes(self) -> Bools:
        """Packets that leave to make the peer answer: an empty ACK below what was sent, or a byte beyond the window."""
        empty = self.pure_ack & (self["seq"] < self.nxt)
        byte = (self["length"] == 1) & (self.end > self.edge)
        return np.asarray(self.out & (empty | byte))

    @cached_property
    def arrivals(self) -> Arrivals:
        """When each byte arrived first; numbers with `apart` added."""
        rows = np.flatnonzero(~self.out & (self.end > self["seq"]))
        return Arrivals(rows, (self["seq"] + self.apart)[rows], (self.end + self.apart)[rows])

    @cached_property
    def arrived_to(self) -> Ints:
        """RCV.NXT with what the row brings; of other rows as `rcv_nxt`."""
        rows = self.arrivals.rows
        reached = np.full(len(self), NEVER, np.int64)
        reached[rows] = self.arrivals.contiguous() - self.apart[rows]
        return np.maximum(self.highest(reached, reached > NEVER), reached)

    @cached_property
    def rcv_nxt(self) -> Ints:
        """RCV.NXT by what had arrived: all below had, without a gap; NEVER before the peer's SYN."""
        return self._before(self.arrived_to)

    @cached_property
    def repeated(self) -> Bools:
        """Rows whose payload had arrived before, all of it."""
        mask = np.zeros(len(self), np.bool_)
        rows = np.flatnonzero(~self.out & self.data)
        start = (self["seq"] + self.apart)[rows]
        mask[rows] = self.arrivals.whole(start, start + self["length"][rows]) < rows
        return mask

    @cached_property
    def refused(self) -> Bools:
        """Rows at which `rcv_nxt` may be above the host's own: it had dropped what it had no memory for.

        Such data is answered by a zero window below what arrived (RFC 9293, 3.8.6), until it comes again.
        """
        acks = self.out & self.has(ACK) & ~self.has(RST)
        full = acks & (self["window"] == 0) & (self["ack"] < self.rcv_nxt)
        next_ack = self.following(acks)
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
        time = self["time_ns"] + self.apart
        return np.maximum(search(time, time - (0 if self.exact else 1_000_000)), self.first)

    def settled(self, values: Ints, within_ns: int) -> Ints:
        """What a running maximum (NEVER: none yet) had reached at the latest this time before each row: TCP has dealt
        with what came by then."""
        running = np.maximum.accumulate(values + self.apart) - self.apart if len(self) else values
        time = self["time_ns"] + self.apart
        rows = search(time, time - within_ns) - 1
        return np.where(rows >= self.first, running[rows], NEVER)

    @cached_property
    def apart(self) -> Ints:
        """Added to a row's numbers so that the numbers of all connections have an order."""
        return np.asarray(self._group * APART)
