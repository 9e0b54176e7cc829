# SPDX-License-Identifier: Apache-2.0
"""The packets between two hosts as they were on the wire, each with its arrival where both ends were captured."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from testctl_agent.spec.errors import PlanError

from testctl.records import Records
from testctl.records.schema import FIN, RST, SYN, Array, Bools, Ints

_KEY = ("flow", "conn", "seq", "length", "ack", "tsval", "kind")
"""What a packet keeps on its way.  ECN and the flags that routers may change are not among it."""
_COLUMNS = (
    "time_ns",
    "flow",
    "conn",
    "seq",
    "length",
    "ack",
    "tsval",
    "flags",
    "ecn",
    "wire",
    "segs",
    "sack1_start",
    "sack1_end",
)


@dataclass(frozen=True)
class Way:
    """Packets of one direction in the order of sending, one row a packet on the wire.

    flow     index in Wire.flows
    seq, length, flags, ecn   as sent; wire: bytes of its frame
    sent_ns  by the sender's clock, got_ns by the receiver's; -1: not captured there, which is lost where both are
    got_ecn  as it arrived; copies: how often it arrived
    doubled  where the data begins that it reports as a duplicate (RFC 2883), or -1
    again    sent again later, and not reported as a duplicate: lost, as far as the sender's end alone tells
    paired   whether both ends were captured
    """

    flow: Ints
    conn: Ints
    seq: Ints
    length: Ints
    flags: Ints
    ecn: Ints
    wire: Ints
    sent_ns: Ints
    got_ns: Ints
    got_ecn: Ints
    copies: Ints
    ack: Ints
    doubled: Ints
    again: Bools
    largest_frame: int
    paired: bool

    @property
    def data(self) -> Bools:
        return np.asarray(self.length > 0)

    @property
    def lost(self) -> Bools:
        return np.asarray(self.got_ns < 0) if self.paired else self.again


@dataclass(frozen=True)
class Wire:
    """What was captured between two hosts.

    hosts  the one that the first flow comes from, and the other
    flows  (name, whether the second host connects), in the order of the records
    seen   hosts with a capture
    ways   from the first host to the second, and back
    """

    hosts: tuple[str, str]
    flows: tuple[tuple[str, bool], ...]
    seen: tuple[str, ...]
    ways: tuple[Way, Way]


def wire_of(records: Records) -> Wire:
    """Raises PlanError without two hosts, or without a packet of theirs."""
    if not records.point.flows:
        raise PlanError("want TCP connections to reproduce; got none")
    hosts = records.point.flows[0].ends
    others = [flow.name for flow in records.point.flows if set(flow.ends) != set(hosts)]
    if others:
        raise PlanError(
            f"want all connections between two hosts; got {others[0]}, which is not between {' and '.join(hosts)}"
        )
    flows = tuple((flow.name, flow.source != hosts[0]) for flow in records.point.flows)
    seen = tuple(host for host in hosts if _at(records, host, None).any())
    if not seen:
        raise PlanError(f"want packets that {hosts[0]} or {hosts[1]} captured; got none")
    ways = [_way(records, ends, flows) for ends in (hosts, hosts[::-1])]
    if not ways[0].paired:
        ways = [replace(way, again=_again(way, back)) for way, back in (ways, ways[::-1])]
    return Wire(hosts, flows, seen, (ways[0], ways[1]))


def _again(way: Way, back: Way) -> Bools:
    """Data sent before the last time, of a capture of its sender."""
    again = np.zeros(len(way.seq), np.bool_)
    latest: dict[tuple[int, int, int], int] = {}
    doubled = set(zip(back.flow.tolist(), back.conn.tolist(), back.doubled.tolist(), strict=True))
    columns = (way.flow, way.conn, way.seq, way.length, way.sent_ns)
    for row, (flow, conn, seq, length, sent) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        if length and sent >= 0:
            before = latest.get((flow, conn, seq))
            if before is not None and (flow, conn, seq) not in doubled:
                again[before] = True
            latest[flow, conn, seq] = row
    return again


def _at(records: Records, host: str, out: bool | None) -> Bools:
    codes, names = records.codes("where")
    if host not in names:
        return np.zeros(len(codes), np.bool_)
    here = np.asarray(codes == names.index(host))
    return here if out is None else np.asarray(here & (records.column("out") == out))


def _way(records: Records, ends: tuple[str, str], flows: tuple[tuple[str, bool], ...]) -> Way:
    sent, got = _side(records, ends[0], True, flows), _side(records, ends[1], False, flows)
    paired = bool(len(sent["seq"])) and bool(len(got["seq"]))
    if not paired:
        side = sent if len(sent["seq"]) else got
        none = np.full(len(side["seq"]), -1)
        sent_ns, got_ns = (side["time_ns"], none) if side is sent else (none, side["time_ns"])
        return _made(side, sent_ns, got_ns, side["ecn"], (got_ns >= 0).astype(np.int64), False)
    at, copies = _matched(sent, got)
    there = at >= 0
    got_ns = np.where(there, got["time_ns"][at], -1)
    return _made(sent, sent["time_ns"], got_ns, np.where(there, got["ecn"][at], sent["ecn"]), copies, True)


def _made(side: dict[str, Ints], sent_ns: Ints, got_ns: Ints, got_ecn: Ints, copies: Ints, paired: bool) -> Way:
    columns = {name: side[name] for name in ("flow", "conn", "seq", "length", "flags", "ecn", "wire", "ack")}
    columns["doubled"] = np.where(side["sack1_end"] <= side["ack"], side["sack1_start"], -1)
    largest = int(side["frame"].max(initial=0))
    return Way(
        **columns,
        sent_ns=sent_ns, got_ns=got_ns, got_ecn=got_ecn, copies=copies, again=np.zeros(len(sent_ns), np.bool_),
        largest_frame=largest, paired=paired,
    )  # fmt: skip


def _side(records: Records, host: str, out: bool, flows: tuple[tuple[str, bool], ...]) -> dict[str, Ints]:
    """The columns of what a host sent, or what arrived at it; frames of several segments become packets."""
    rows = np.flatnonzero(_at(records, host, out))
    columns = {name: records.values("wire_bytes" if name == "wire" else name, rows).astype(np.int64)
               for name in _COLUMNS if name != "flow"}  # fmt: skip
    codes, names = records.codes("flow")
    number = {name: at for at, (name, _) in enumerate(flows)}
    order = np.array([number.get(name, -1) for name in names], np.int64)
    columns["flow"] = order[codes[rows]] if len(rows) else np.empty(0, np.int64)
    columns["frame"] = columns["length"]
    columns = {name: column[columns["flow"] >= 0] for name, column in columns.items()}
    return _split(columns) if (columns["segs"] > 1).any() else columns | {"kind": _kind(columns["flags"])}


def _kind(flags: Array) -> Ints:
    return np.asarray(flags & (SYN | FIN | RST))


def _split(columns: dict[str, Ints]) -> dict[str, Ints]:
    segs, length = np.maximum(columns["segs"], 1), columns["length"]
    alone = length[(segs == 1) & (length > 0)]
    size = int(alone.max()) if len(alone) else 0
    size = size if ((length[segs > 1] + size - 1) // max(size, 1) == segs[segs > 1]).all() else 0
    each = np.where(segs == 1, length, size or -(-length // segs))
    rows = np.repeat(np.arange(len(segs)), segs)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(segs) - segs, segs)
    made = {name: column[rows] for name, column in columns.items()}
    start = place * each[rows]
    made["seq"] = made["seq"] + start
    made["length"] = np.minimum(each[rows], np.maximum(length[rows] - start, 0))
    headers = (columns["wire"] - length) // segs
    made["wire"] = made["length"] + headers[rows]
    last = place == segs[rows] - 1
    made["flags"] = np.where(last, made["flags"], made["flags"] & ~(FIN | 8))
    return made | {"kind": _kind(made["flags"])}


def _matched(sent: dict[str, Ints], got: dict[str, Ints]) -> tuple[Ints, Ints]:
    """For each packet sent its row among those that arrived, or -1; and how often it arrived.

    The n-th of several that look the same is the n-th that arrived.  Where fewer arrived, it is the last of those sent
    before the next other packet that arrived; where more did, the last one has the copies.
    """
    count = len(sent["seq"])
    both = [np.concatenate([sent[name], got[name]]) for name in _KEY]
    order = np.lexsort(both[::-1])
    differs = np.zeros(len(order), np.bool_)
    for column in both:
        differs[1:] |= column[order][1:] != column[order][:-1]
    begins = np.flatnonzero(np.concatenate([[True], differs[1:]])) if len(order) else np.empty(0, np.int64)
    sizes = np.diff(np.append(begins, len(order)))
    lefts = np.add.reduceat(order < count, begins) if len(begins) else sizes  # of each group, which come first in it
    at, copies = np.full(count, -1), np.zeros(count, np.int64)
    group = np.repeat(np.arange(len(begins)), sizes)
    paired = np.flatnonzero((order < count) & (2 * lefts == sizes)[group])
    at[order[paired]] = order[paired + lefts[group[paired]]] - count
    copies[order[paired]] = 1
    unclear = []
    for number in np.flatnonzero((lefts > 0) & (lefts < sizes) & (2 * lefts != sizes)).tolist():
        rows = order[begins[number] : begins[number] + sizes[number]]
        left, right = rows[: lefts[number]], rows[lefts[number] :] - count
        if len(right) > len(left):
            at[left], copies[left] = right[: len(left)], 1
            copies[left[-1]] += len(right) - len(left)
        else:
            unclear.append((left, right))
    known = np.flatnonzero(at >= 0)
    by_arrival = known[np.argsort(at[known], kind="stable")]
    for left, right in unclear:
        free = list(left)
        for arrival in right:
            behind = np.searchsorted(at[by_arrival], arrival)
            limit = by_arrival[behind] if behind < len(by_arrival) else count
            fitting = [row for row in free if row < limit] or free[:1]
            row = fitting[-1]
            at[row], copies[row] = arrival, 1
            free = [other for other in free if other > row] or [other for other in free if other != row]
    return at, copies
