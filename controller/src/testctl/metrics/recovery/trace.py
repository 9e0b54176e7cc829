# SPDX-License-Identifier: Apache-2.0
"""A connection as its sender saw it: departures of data and arrivals of ACKs in one order."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from testctl.metrics.core.memo import once
from testctl.metrics.core.native import walks
from testctl.metrics.core.rtts import ack_line
from testctl.metrics.core.view import FlowView, Rows
from testctl.metrics.recovery.trace_part import Part
from testctl.records.rows import search
from testctl.records.schema import FIN, SACK_EDGES, SYN, Array, Bools, Ints

_AT_ONCE, _BEFORE = 1 << 16, 1 << 10
"""Events whose columns are made at once, and how many of these are before the first requested one."""


class Departures(NamedTuple):
    """Data and FINs that left, in order of the capture; nxt: snd.nxt after each."""

    row: Array
    time_ns: Ints
    seq: Ints
    length: Array
    fin: Bools
    segs: Array
    retrans: Bools
    nxt: Ints


class Acks(NamedTuple):
    """ACKs that came, in order of the capture; una: snd.una after each."""

    row: Array
    time_ns: Ints
    number: Ints
    length: Array
    una: Ints


@dataclass(frozen=True, eq=False)
class Trace:
    """Departures and ACKs of one connection at its sender.

    An event is a departure or an ACK, by its place in the order of both in the capture, from 0; part() loads
    all columns of consecutive events.  Queries of the whole connection use `data` and `acks`, as there are millions of
    events and little happens at most of them.
    sacks: the ACKs with SACK blocks; blocks: (len(sacks) + 1, 8) edges (start, end, start, …; -1 none); the first
    entry is of all ACKs without.
    fin: the number that the FIN takes, -1 without one; fin_alone: it left in a packet without data;
    from_start: the SYN was captured; start: snd.una before the first event; mss: the largest packet's payload.
    Only a capture at the sender shows this order.
    """

    flow: FlowView
    conn: int
    data: Departures
    acks: Acks
    sacks: Ints
    blocks: Ints
    from_start: bool
    start: int
    fin: int
    fin_alone: bool
    mss: int
    _made: list[Part] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.data.row) + len(self.acks.row)

    @cached_property
    def info(self) -> dict[str, Array]:
        """tcp_info of the connection's sender, in order of time; {} when the flow has none."""
        info = self.flow.info
        own = info["conn"] == self.conn if info else None
        return {name: column[own] for name, column in info.items()}

    @cached_property
    def sack(self) -> bool:
        """Whether any ACK had SACK blocks."""
        return bool((self.blocks >= 0).any())

    @cached_property
    def sack_tops(self) -> Ints:
        """The highest byte that each of `sacks` SACKed."""
        return np.asarray(self.blocks[1:, 1::2].max(axis=1))

    @property
    def last_ns(self) -> int:
        return max(int(side.time_ns[-1]) for side in (self.data, self.acks) if len(side.row))

    def edges(self, entry: int) -> list[tuple[int, int]]:
        """The SACK blocks of an entry of `blocks`."""
        edges = self.blocks[entry].tolist()
        return [(low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if high > low >= 0]

    def acks_before(self, data: Ints) -> Ints:
        """How many ACKs came before each of these departures."""
        return np.searchsorted(self.acks.row, self.data.row[data])

    def data_before(self, acks: Ints) -> Ints:
        """How many departures were before each of these ACKs."""
        return search(self.data.row, self.acks.row[acks])

    def event_of_ack(self, ack: int) -> int:
        return ack + int(np.searchsorted(self.data.row, self.acks.row[ack]))

    def event_of_data(self, data: int) -> int:
        return data + int(np.searchsorted(self.acks.row, self.data.row[data]))

    def before(self, event: int) -> tuple[int, int]:
        """How many departures and how many ACKs are before an event."""
        acks = bisect_left(range(len(self.acks.row)), event, key=self.event_of_ack)
        return event - acks, acks

    def end_of(self, data: int) -> int:
        """The byte behind the last of a departure, and behind its FIN."""
        of = self.data
        return int(of.seq[data]) + int(of.length[data]) + int(of.fin[data])

    def time_before(self, data: int, event: int) -> int:
        """The time of the event before a departure, which is not the first; event: its place among all."""
        acks = event - data
        times = ([self.data.time_ns[data - 1]] if data else []) + ([self.acks.time_ns[acks - 1]] if acks else [])
        return int(max(times))

    def una_after(self, acks: int) -> int:
        """snd.una after this number of ACKs."""
        return int(self.acks.una[acks - 1]) if acks else self.start

    def nxts_after(self, data: Ints) -> Ints:
        """snd.nxt after each of these numbers of departures."""
        return np.where(data > 0, self.data.nxt[np.maximum(data - 1, 0)], self.start)

    def nxt_after(self, data: int) -> int:
        """snd.nxt after this number of departures."""
        return int(self.data.nxt[data - 1]) if data else self.start

    def reached(self, byte: int) -> int:
        """The first event after which snd.una is at least `byte`; how many events there are if it never is."""
        if byte <= self.start:
            return 0
        ack = int(np.searchsorted(self.acks.una, byte))
        return self.event_of_ack(ack) if ack < len(self.acks.row) else len(self)

    def part(self, low: int, high: int) -> Part:
        """The columns of the events low <= event < high; the last ones made are kept."""
        made = self._made[0] if self._made else None
        if made is None or not made.first <= low <= high <= made.first + len(made):
            begin = max(low - _BEFORE, 0) if len(self) > _AT_ONCE else 0
            made = self._columns(begin, min(max(high, begin + _AT_ONCE), len(self)))
            self._made[:] = [made]
        return made.part(low, high)

    def _columns(self, low: int, high: int) -> Part:
        (data, acks), (data_end, acks_end) = self.before(low), self.before(high)
        left = Departures._make(column[data:data_end] for column in self.data)
        came = Acks._make(column[acks:acks_end] for column in self.acks)
        first, last = np.searchsorted(self.sacks, [acks, acks_end]).tolist()
        columns = walks().trace(
            high - low,
            data_row=left.row, data_ns=left.time_ns, seq=left.seq, length=left.length, fin=left.fin, segs=left.segs,
            retrans=left.retrans, data=len(left.row),
            ack_row=came.row, ack_ns=came.time_ns, ack=came.number, ack_length=came.length, acks=len(came.row),
            sack=self.sacks[first:last] - acks, sack_top=self.sack_tops[first:last], sacks=last - first,
            una=self.una_after(acks), nxt=self.nxt_after(data),
        )  # fmt: skip
        if first:
            columns["at"][columns["at"] > 0] += first
        return Part(low, **columns)


def traces(flow: FlowView, *, repaired: bool = False) -> list[Trace]:
    """The connections of a flow that sent data, as far as they were captured at the sender, each made once.

    repaired: only those that retransmitted.
    """
    conns = np.unique(flow.sent["conn"][flow.sent["retrans"]]).tolist() if repaired else flow.sent.conns
    return [trace_of(flow, conn) for conn in conns]


@once
def trace_of(flow: FlowView, conn: int) -> Trace:
    """A connection that sent anything, made once."""
    out, acks = flow.out.of_conn(conn), flow.acks_in.of_conn(conn)
    from_start = bool((out["flags"] & SYN > 0).any())
    data = out.where((out["length"] > 0) | (out["flags"] & (FIN | SYN) == FIN))
    seq, length, segs, fin = data["seq"], data["length"], data["segs"], data["flags"] & FIN > 0
    sacks, blocks = _sacks(flow, acks)
    start = 0 if from_start or not len(acks) else int(acks["ack"][0])
    nxt = seq + length
    last = nxt[fin].max(initial=-1)
    nxt += fin
    return Trace(
        flow=flow,
        conn=conn,
        data=Departures(_rows(data), data["time_ns"], seq, length, fin, segs, data["retrans"], _highest(nxt, start)),
        acks=Acks(_rows(acks), acks["time_ns"], acks["ack"], acks["length"], _una(flow, acks, conn, start)),
        sacks=sacks,
        blocks=blocks,
        from_start=from_start,
        start=start,
        fin=int(last),
        fin_alone=bool((length[fin] == 0).any()),
        mss=data.largest,
    )


def _rows(rows: Rows) -> Array:
    return rows.index.astype(np.int32, copy=False)


def _highest(numbers: Ints, start: int) -> Ints:
    """The highest number so far, and at least `start`; in the memory of the numbers."""
    if len(numbers):
        numbers[0] = max(int(numbers[0]), start)
    return np.maximum.accumulate(numbers, out=numbers)


def _una(flow: FlowView, acks: Rows, conn: int, start: int) -> Ints:
    """snd.una after each ACK; not copied where the flow has it."""
    if acks is flow.acks_in and conn == 0 and len(acks):
        line, _ = ack_line(flow)
        if line[0] >= start:
            return line
    return _highest(acks["ack"].copy(), start)


def _sacks(flow: FlowView, acks: Rows) -> tuple[Ints, Ints]:
    """(which ACKs have SACK blocks, edges of none and of each of these)"""
    edges = [flow.records.others(name, acks.index, -1) for name in SACK_EDGES]
    with_blocks = np.unique(np.concatenate([places for places, _ in edges]))
    blocks = np.full((len(with_blocks) + 1, len(SACK_EDGES)), -1, np.int64)
    for number, (places, values) in enumerate(edges):
        blocks[1 + np.searchsorted(with_blocks, places), number] = values
    return with_blocks, blocks
