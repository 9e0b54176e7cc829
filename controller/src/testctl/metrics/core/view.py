# SPDX-License-Identifier: Apache-2.0
"""A flow as metrics see it: what left the sender, what reached the receiver, and the ACKs back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from testctl.metrics.core.memo import once
from testctl.metrics.core.spec import NAN
from testctl.records import Records
from testctl.records.schema import ACK, SYN, Array, Ints, codes_of, numbers_of

_FEW = 32

CONN_BITS = 42  # a connection's number above its sequence numbers: one axis for a whole flow


@dataclass
class Rows:
    """Rows of the packets table, in order of time; columns are taken once."""

    records: Records
    index: Ints
    memo: dict[str, Array] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, name: str) -> Array:
        if name not in self.memo:
            self.memo[name] = self.records.values(name, self.index)
        return self.memo[name]

    def where(self, mask: Array) -> Rows:
        return self if mask.all() else Rows(self.records, self.index[mask])

    def of_conn(self, conn: int) -> Rows:
        """Those of one connection."""
        return self.where(self["conn"] == conn) if len(self) else self

    def part(self, low_ns: int, high_ns: int) -> Rows:
        """Those of a time, [low, high)."""
        low, high = np.searchsorted(self["time_ns"], [low_ns, high_ns])
        return Rows(self.records, self.index[low:high])

    def release(self) -> None:
        """Forget the columns, if they are of a point whose columns are read in parts."""
        if self.records.in_parts:
            self.memo.clear()

    @cached_property
    def start(self) -> Ints:
        """First byte on the flow's axis: seq, and the connection above CONN_BITS."""
        return np.asarray((self["conn"].astype(np.int64) << CONN_BITS) + self["seq"])

    @cached_property
    def end(self) -> Ints:
        """The byte behind the last on the flow's axis."""
        return np.asarray(self.start + self["length"])

    @cached_property
    def acked(self) -> Ints:
        """The acknowledgement number on the flow's axis."""
        return np.asarray((self["conn"].astype(np.int64) << CONN_BITS) + self["ack"])


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

    @cached_property
    def sent(self) -> Rows:
        """Packets with payload that left the sender."""
        return self.out.where(self.out["length"] > 0)

    @cached_property
    def arrived(self) -> Rows:
        """Packets with payload that reached the receiver."""
        return self.into.where(self.into["length"] > 0)

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
        """The active time less its first tenth, or less its first 100 ms if that is shorter."""
        start, end = self.active_ns
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

    @cached_property
    def alone(self) -> bool:
        """Whether the sender's counters count this flow only."""
        flows = self.records.point.flows
        return sum(self.sender in flow.ends for flow in flows) == 1

    @cached_property
    def snmp(self) -> dict[str, int]:
        """Differences of the sender's SNMP counters when they are this flow's alone, or {}."""
        counters: dict[str, Any] = self.records.counters.get(self.sender, {})
        return dict(counters.get("snmp", {})) if self.alone else {}


@once
def view(records: Records, flow: str) -> FlowView:
    """The view of a flow, made once.  Raises KeyError for a flow the point has not got."""
    asked = records.point.flow(flow)
    if asked is None:
        raise KeyError(f"flow {flow}: want one of {', '.join(records.flows)}")
    ends = asked.ends

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
    asked_way = 1 if asked.options.get("reverse") is True else 0
    direction = asked_way if carried[0] == carried[1] else int(carried[1] > carried[0])
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
    return Rows(records, _groups(records).get((flow, where, direction, out), np.empty(0, np.int64)))


@once
def _groups(records: Records) -> dict[tuple[str, str, int, bool], Ints]:
    """Row numbers by flow, where, direction and out, ascending."""
    flow, flows = records.codes("flow")
    where, wheres = records.codes("where")
    found: dict[tuple[str, str, int, bool], Ints] = {}
    if len(flow):
        key: Any = flow.astype(np.uint16 if len(flows) * len(wheres) * 4 < 1 << 16 else np.int64)
        for factor, column in ((len(wheres), where), (2, records.column("direction")), (2, records.column("out"))):
            key *= key.dtype.type(factor)
            key += column.astype(key.dtype)
        for number, rows in _rows_by(key):
            place = number >> 2
            name = (flows[place // len(wheres)], wheres[place % len(wheres)], number >> 1 & 1, bool(number & 1))
            found[name] = rows.astype(np.int32) if records.in_parts else rows
    records.release()
    return found


def _rows_by(key: Array) -> Iterator[tuple[int, Ints]]:
    """(value, where it is) of each value of a column: a few values one by one, which takes less memory than sorting."""
    values = np.flatnonzero(np.bincount(key)) if key.dtype == np.uint16 else np.empty(0, np.int64)
    if 0 < len(values) <= _FEW:
        yield from ((value, np.flatnonzero(key == value)) for value in values.tolist())
        return
    order = np.argsort(key, kind="stable")  # 16 bits sort by radix
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    yield from ((int(key[rows[0]]), rows) for rows in np.split(order, cuts))
