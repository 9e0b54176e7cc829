# SPDX-License-Identifier: Apache-2.0
"""A flow as metrics see it: what left the sender, what reached the receiver, and the ACKs back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from testctl_agent.params.flow.traffic import stop_ns

from testctl.core.point import TimedFlow
from testctl.metrics.core.memo import once
from testctl.metrics.core.spec import NAN
from testctl.records import Records
from testctl.records.rows import grouped
from testctl.records.schema import ACK, SYN, Array, Ints, codes_of, numbers_of

MANY = 1 << 23
"""Packets of a point that is analysed with less memory, and a little slower."""

CONN_BITS = 42  # a connection's number above its sequence numbers: one axis for a whole flow
_FEW_TURNS = 16
"""Greatest number of places at which a subset begins or ends for its columns to be copied range by range."""


def _parts(column: Array, ranges: Sequence[tuple[int, int]]) -> Array:
    """These ranges of a column, one after the other; a single range is not copied."""
    parts = [column[begin:end] for begin, end in ranges]
    return parts[0] if len(parts) == 1 else np.concatenate([column[:0], *parts])


@dataclass
class Rows:
    """Rows of the packets table, in order of time; columns are taken once.

    parent: the rows that this is a subset of, by a few ranges [begin, end) or by a mask.  Columns are sliced from the
    parent's; through a mask only those already loaded.
    """

    records: Records
    index: Ints
    memo: dict[str, Array] = field(default_factory=dict, repr=False)
    parent: Rows | None = field(default=None, repr=False)
    ranges: tuple[tuple[int, int], ...] = ()
    mask: Array | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, name: str) -> Array:
        if name not in self.memo:
            if self.parent is not None and self.ranges:
                self.memo[name] = _parts(self.parent[name], self.ranges)
            elif self.parent is not None and self.mask is not None and name in self.parent.memo:
                self.memo[name] = np.asarray(self.parent.memo[name][self.mask])
            else:
                self.memo[name] = self.records.values(name, self.index)
        return self.memo[name]

    def at(self, name: str, positions: Ints) -> Array:
        """A column at some of these rows, in any order: the others are not taken."""
        if name in self.memo or not len(positions):
            return np.asarray(self[name][positions])
        some, back = np.unique(positions, return_inverse=True)
        return np.asarray(self.records.values(name, self.index[some])[back])

    def where(self, mask: Array) -> Rows:
        """Those that the mask selects."""
        if mask.all():
            return self
        turns = np.flatnonzero(mask[1:] != mask[:-1]) + 1
        if self.records.in_parts:
            return Rows(self.records, self.index[mask])
        if len(turns) > _FEW_TURNS:
            return Rows(self.records, self.index[mask], parent=self, mask=mask)
        ranges = tuple((begin, end) for begin, end in pairwise([0, *turns.tolist(), len(mask)]) if mask[begin])
        return Rows(self.records, _parts(self.index, ranges), parent=self, ranges=ranges)

    def of_conn(self, conn: int) -> Rows:
        return self.where(self["conn"] == conn) if len(self) else self

    @property
    def conns(self) -> list[int]:
        """The connections that they are of, ascending."""
        conn = self["conn"]
        if len(conn) and (first := int(conn.min())) == int(conn.max()):
            return [first]
        return [int(conn) for conn in np.unique(conn)]

    def part(self, low_ns: int, high_ns: int) -> Rows:
        """The rows of a time, [low, high)."""
        low, high = np.searchsorted(self["time_ns"], [low_ns, high_ns])
        return Rows(self.records, self.index[low:high])

    def release(self) -> None:
        """Forget the columns, if they are of a point whose columns are read in parts."""
        if self.records.in_parts:
            self.memo.clear()

    def forget(self) -> None:
        """Forget the columns, which are taken again where they are needed."""
        self.memo.clear()
        for name in ("start", "end", "acked"):
            vars(self).pop(name, None)
        if (some := vars(self).pop("with_payload", None)) is not None and some is not self:
            some.forget()

    @cached_property
    def with_payload(self) -> Rows:
        return self.where(self["length"] > 0)

    @property
    def sent_on(self) -> Rows:
        """The packets that left the switch that has them."""
        return self.where(self["left_ns"] >= 0) if len(self) else self

    @property
    def largest(self) -> int:
        """The largest payload of a packet on the wire; 0 without any."""
        length, segs = self["length"], self["segs"]
        if not len(self):
            return 0
        return int(length.max() if segs.max() == 1 else (-(-length // segs.astype(np.int64))).max())

    @cached_property
    def start(self) -> Ints:
        """First byte on the flow's axis: seq, and the connection above CONN_BITS."""
        return self._on_axis("seq")

    @cached_property
    def end(self) -> Ints:
        """The byte behind the last on the flow's axis."""
        return np.asarray(self.start + self["length"])

    @cached_property
    def acked(self) -> Ints:
        """The acknowledgement number on the flow's axis."""
        return self._on_axis("ack")

    def _on_axis(self, name: str) -> Ints:
        conn = self["conn"]
        if not conn.any():
            return self[name]
        return np.asarray((conn.astype(np.int64) << CONN_BITS) + self[name])


@dataclass
class FlowView:
    """A flow's packets by role.

    direction: the one that carried more payload (as the plan has it when equal); sender, receiver: its ends.
    Each Rows is empty when that end was not captured: out = all that left the sender in the data
    direction, into = the same arriving at the receiver, acks_in = arriving at the sender,
    acks_out = leaving the receiver.
    """

    records: Records
    name: str
    direction: int
    sender: str
    receiver: str
    out: Rows
    into: Rows
    acks_in: Rows
    acks_out: Rows

    @property
    def requested(self) -> TimedFlow:
        return next(flow for flow in self.records.point.flows if flow.name == self.name)

    @cached_property
    def sent(self) -> Rows:
        """Packets with payload that left the sender."""
        return self.out.with_payload

    @cached_property
    def arrived(self) -> Rows:
        """Packets with payload that reached the receiver."""
        return self.into.with_payload

    @property
    def at_sink(self) -> Rows:
        """What a throughput is drawn of: arrivals, or departures when the receiver was not captured."""
        return self.into if len(self.into) else self.out

    @property
    def data(self) -> Rows:
        """What data packets are drawn of: departures, or arrivals when the sender was not captured."""
        return self.sent if len(self.sent) else self.arrived

    @property
    def acks(self) -> Rows:
        """What ACKs are drawn of: arrivals at the sender, or departures when it was not captured."""
        return self.acks_in if len(self.acks_in) else self.acks_out

    @cached_property
    def active_ns(self) -> tuple[int, int]:
        """From the first data packet's arrival at the receiver to the last one's, by the receiver's clock; (0, 0)
        without any."""
        time_ns = self.arrived["time_ns"]
        return (int(time_ns[0]), int(time_ns[-1])) if len(time_ns) else (0, 0)

    @cached_property
    def active_s(self) -> float:
        """The length of the active time; NaN where there is none, as with a single packet."""
        start, end = self.active_ns
        return (end - start) / 1e9 if end > start else NAN

    @cached_property
    def steady_ns(self) -> tuple[int, int]:
        """The active time less its first tenth, or less its first 100 ms if that is shorter.

        What arrives after the sender stopped is left out: the last connections empty their buffers, one after the
        other, and no throughput is expected.
        """
        start, end = self.active_ns
        stop = stop_ns(self.requested.options)
        if start < stop < end:
            end = stop
        return start + min((end - start) // 10, 10**8), end

    @cached_property
    def info(self) -> dict[str, Array]:
        """tcp_info of the sender's sockets, in order of time; {} when there is none."""
        table = self.records.tcp_info
        if not table.num_rows:
            return {}
        flow, flows = codes_of(table, "flow")
        where, wheres = codes_of(table, "where")
        if self.name not in flows or self.sender not in wheres:
            return {}
        rows = np.flatnonzero((flow == flows.index(self.name)) & (where == wheres.index(self.sender)))
        if not len(rows):
            return {}
        names = [name for name in table.schema.names if name not in ("flow", "where")]
        return {name: numbers_of(table, name)[rows] for name in names}


def forget_columns(records: Records) -> None:
    """Forget what the views of a point's flows have taken of the packets."""
    for made in records.memo.values():
        for rows in vars(made).values() if isinstance(made, FlowView) else (made,):
            if isinstance(rows, Rows):
                rows.forget()


@once
def view(records: Records, flow: str) -> FlowView:
    """The view of a flow, made once.  Raises KeyError for a flow that the point does not have."""
    requested = records.point.flow(flow)
    if requested is None:
        raise KeyError(f"flow {flow}: want one of {', '.join(records.flows)}")
    ends = requested.ends

    def rows(where: str, direction: int, out: bool) -> Rows:
        return rows_of(records, flow, where, direction, out=out)

    carried = [
        max(
            int(rows(ends[d], d, True)["length"].sum()),
            int(rows(ends[1 - d], d, False)["length"].sum()),
            *(int(rows(switch, d, False)["length"].sum()) for switch in records.switches),
        )
        for d in (0, 1)
    ]
    planned_way = 1 if requested.options.get("reverse") is True else 0
    direction = planned_way if carried[0] == carried[1] else int(carried[1] > carried[0])
    sender, receiver = ends if direction == 0 else ends[::-1]
    acks_in, acks_out = rows(sender, 1 - direction, False), rows(receiver, 1 - direction, True)
    return FlowView(
        records=records,
        name=flow,
        direction=direction,
        sender=sender,
        receiver=receiver,
        out=rows(sender, direction, True),
        into=rows(receiver, direction, False),
        acks_in=acks_in.where(acks_in["flags"] & (ACK | SYN) == ACK),
        acks_out=acks_out.where(acks_out["flags"] & (ACK | SYN) == ACK),
    )


def rows_of(records: Records, flow: str, where: str, direction: int, *, out: bool) -> Rows:
    """A flow's packets of one direction (0: from -> to) as one place saw them leave or arrive."""
    make = _group if records.in_parts else _shared_group
    return make(records, (flow, where, direction, out))


def _group(records: Records, group: tuple[str, str, int, bool]) -> Rows:
    return Rows(records, _groups(records).get(group, np.empty(0, np.int64)))


@once
def _shared_group(records: Records, group: tuple[str, str, int, bool]) -> Rows:
    """The same for all who ask, with the columns that it has taken."""
    return _group(records, group)


@once
def _groups(records: Records) -> dict[tuple[str, str, int, bool], Ints]:
    """Row numbers by flow, where, direction and out, ascending."""
    flow, flows = records.codes("flow")
    where, wheres = records.codes("where")
    groups: dict[tuple[str, str, int, bool], Ints] = {}
    if len(flow):
        kind = np.int32 if records.in_parts or len(flow) > MANY else np.int64
        direction, out = records.column("direction"), numbers_of(records.packets, "out")
        for number, rows in grouped(flow, where, direction, out, len(flows), len(wheres)):
            place = number >> 2
            name = (flows[place // len(wheres)], wheres[place % len(wheres)], number >> 1 & 1, bool(number & 1))
            groups[name] = rows.astype(kind, copy=False)
    records.release()
    return groups
