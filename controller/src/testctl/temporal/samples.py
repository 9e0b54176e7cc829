# SPDX-License-Identifier: Apache-2.0
"""Signals and events of a flow, from its records: for every sample the connection, the time, and what it was.

The instruments that they need are in testctl.core.temporal; without them there are no samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from testctl.core.temporal import STATES, WIDTHS_NS
from testctl.metrics.core.bins import dense_bins
from testctl.metrics.core.passages import Passage, data_passages
from testctl.metrics.core.rtts import round_trips
from testctl.metrics.core.view import FlowView, Rows
from testctl.metrics.recovery.kernel_trace import traced_columns, traced_names
from testctl.records.schema import DROPPED, FATES, Array, Ints

_SAMPLED = {"pacing_rate": 8, "delivery_rate": 8, "min_rtt": 1}
"""Columns of tcp_info, and the factor to the signal's unit: rates are in bytes/s there."""
_NO_RTT = 2**32 - 1
"""min_rtt before any RTT is measured, as of a connection whose SYN was sent again, without timestamps."""
_COLUMNS = {"srtt": "srtt_us", "pacing_rate": "pacing_rate_bps", "delivery_rate": "delivery_rate_bps"}
"""Signals whose column of the kernel's trace has another name."""
_MARKED = tuple(FATES.index(name) for name in ("mark", "queue_mark"))


@dataclass(frozen=True)
class Samples:
    """Samples of all connections of a flow; each connection's are in order of time.

    value  of a signal; NaN where it is not known
    describe  what the sample of a number was: the packet, ACK or row that it comes from
    """

    conn: Array
    time_ns: Ints
    value: Array
    describe: Callable[[int], str]

    @cached_property
    def _of_conns(self) -> dict[int, Ints]:
        return _by_conn(self.conn)

    def of_conn(self, conn: int) -> Ints:
        """The numbers of its samples."""
        return self._of_conns.get(conn, np.empty(0, np.int64))


def signal(flow: FlowView, name: str) -> Samples:
    """The samples of a signal (testctl.core.temporal.SIGNALS), in its unit."""
    columns, describe = _traced(flow)
    column = columns.get(_COLUMNS.get(name, name), np.empty(0))
    if name in _SAMPLED and not (column >= 0).any():
        return _sampled(flow, name)
    if name == "rtt":
        return _round_trips(flow)
    if name == "queue":
        return _queue(flow)
    if (width := name.removeprefix("throughput_")) in WIDTHS_NS:
        return _throughput(flow, WIDTHS_NS[width])
    value = column.astype(np.float64)
    return Samples(columns["conn"], columns["time_ns"], np.where(value < 0, np.nan, value), describe)


def event(flow: FlowView, name: str) -> Samples:
    """The occurrences of an event (testctl.core.temporal.EVENTS)."""
    if name in ("loss", "mark"):
        return _at_switches(flow, DROPPED if name == "loss" else _MARKED)
    columns, describe = _traced(flow)
    if name in ("recovery", "open"):
        rows = _becomes(columns["conn"], columns["state"], STATES.index(name))
    elif name == "timeout" or len(columns["conn"]):
        kinds = traced_names(flow.records, flow.name)
        rows = np.flatnonzero(kinds == {"data": "send"}.get(name, name))
        rows = _first_of_conn(columns["conn"], rows) if name == "data" else rows
    else:
        sent = flow.sent
        rows = np.flatnonzero(sent["retrans"]) if name == "retransmit" else _first_of_conn(sent["conn"])
        return _packets(sent, rows, "data packet")
    return Samples(
        columns["conn"][rows], columns["time_ns"][rows], np.zeros(len(rows)), lambda i: describe(int(rows[i]))
    )


def smoothed_rtt(flow: FlowView) -> Samples:
    """The kernel's smoothed round-trip time in ns: of its trace, or of tcp_info."""
    columns, describe = _traced(flow)
    conn, time_ns, value = columns["conn"], columns["time_ns"], columns["srtt_us"]
    if not len(conn) and flow.info:
        conn, time_ns, value = (flow.info[name] for name in ("conn", "time_ns", "rtt"))
    return Samples(conn, time_ns, np.where(value > 0, value * 1e3, np.nan), describe)


def acks(flow: FlowView) -> Samples:
    """ACKs that the sender's TCP processed, by its kernel's trace, or that came to the sender."""
    columns, describe = _traced(flow)
    if not len(columns["conn"]):
        return _packets(flow.acks_in, np.arange(len(flow.acks_in)), "ACK")
    rows = np.flatnonzero(traced_names(flow.records, flow.name) == "ack")
    return Samples(columns["conn"][rows], columns["time_ns"][rows], np.zeros(len(rows)), describe)


def begins_and_ends(flow: FlowView) -> dict[int, tuple[int, int]]:
    """Connection -> (time of its first record, of its last one)."""
    parts = [(rows["conn"], rows["time_ns"]) for rows in (flow.out, flow.into, flow.acks_in, flow.acks_out)]
    parts += [(passage.rows["conn"], passage.rows["time_ns"]) for passage in data_passages(flow)]
    parts += [(columns["conn"], columns["time_ns"]) for columns in (_traced(flow)[0], flow.info) if columns]
    spans: dict[int, tuple[int, int]] = {}
    for conn, time_ns in parts:
        for number, rows in _by_conn(conn).items():
            first, last = int(time_ns[rows[0]]), int(time_ns[rows[-1]])
            low, high = spans.get(number, (first, last))
            spans[number] = min(low, first), max(high, last)
    return dict(sorted(spans.items()))


def _by_conn(conn: Array) -> dict[int, Ints]:
    """Connection -> its rows, ascending."""
    order = np.argsort(conn, kind="stable")
    numbers, starts = np.unique(conn[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)) if len(conn) else {}


def _traced(flow: FlowView) -> tuple[dict[str, Array], Callable[[int], str]]:
    columns = traced_columns(flow.records, flow.name)

    def describe(row: int) -> str:
        what = traced_names(flow.records, flow.name)[row]
        number = int(np.count_nonzero(columns["conn"][: row + 1] == columns["conn"][row]))
        una, nxt = columns["snd_una"][row], columns["snd_nxt"][row]
        return f"{what}, snd_una {una}, snd_nxt {nxt}, event {number} of the trace"

    return columns, describe


def _sampled(flow: FlowView, name: str) -> Samples:
    info = flow.info or dict.fromkeys(("conn", "time_ns", name), np.empty(0, np.int64))
    sampled = info[name].astype(np.float64)
    known = (sampled >= 0) & ((name != "min_rtt") | (sampled < _NO_RTT))
    value = np.where(known, sampled * _SAMPLED[name], np.nan)
    return Samples(info["conn"], info["time_ns"], value, lambda i: f"sample {i + 1} of tcp_info")


def _round_trips(flow: FlowView) -> Samples:
    trips = round_trips(flow)
    order = np.argsort(trips.time_ns, kind="stable")
    time_ns, value, conn = (column[order] for column in trips)
    return Samples(conn, time_ns, value / 1e3, lambda i: f"round trip {i + 1} of the flow")


def _queue(flow: FlowView) -> Samples:
    deepest: dict[int, tuple[float, Samples]] = {}
    for passage in data_passages(flow):
        rows = passage.queued
        for conn, own in _by_conn(rows["conn"]).items():
            value = rows.at("queue_bytes", own).astype(np.float64)
            if conn not in deepest or value.max() > deepest[conn][0]:
                deepest[conn] = value.max(), replace(_packets(rows, own, "data packet", passage), value=value)
    return _joined(flow, [samples for _, samples in deepest.values()])


def _throughput(flow: FlowView, width_ns: int) -> Samples:
    """Whole bins from the connection's first packet to its last; a bin's rate holds from its end on."""
    rows = flow.into
    parts: list[tuple[Array, Ints, Array]] = []
    for conn, own in _by_conn(rows["conn"]).items():
        edges, sums = dense_bins(rows["time_ns"][own], rows["wire_bytes"][own], width_ns)
        parts.append((np.full(len(sums) - 1, conn), edges[1:-1], sums[:-1] * 8e9 / width_ns))
    none = np.empty(0, np.int64)
    conn_, time_ns, value = (np.concatenate([none, *column]) for column in zip(*parts, strict=True)) if parts else (
        none, none, none)  # fmt: skip
    return Samples(conn_, time_ns, value, lambda i: "the end of a bin")


def _at_switches(flow: FlowView, fates: tuple[int, ...]) -> Samples:
    parts = []
    for passage in data_passages(flow):
        some, fate = passage.fates
        parts.append(_packets(passage.rows, some[np.isin(fate, fates)], "data packet", passage))
    return _joined(flow, parts)


def _joined(flow: FlowView, parts: Sequence[Samples]) -> Samples:
    """All of them, in order of time."""
    if not parts:
        return _packets(flow.out, np.empty(0, np.int64), "")
    ends = np.cumsum([len(part.conn) for part in parts])

    def describe(number: int) -> str:
        which = int(np.searchsorted(ends, number, "right"))
        return parts[which].describe(number - int(ends[which]) + len(parts[which].conn))

    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("conn", "time_ns", "value"))
    conn, time_ns, value = columns
    order = np.argsort(time_ns, kind="stable")
    return Samples(conn[order], time_ns[order], value[order], lambda i: describe(int(order[i])))


def _packets(rows: Rows, some: Ints, what: str, passage: Passage | None = None) -> Samples:
    """Some packets, described by their sequence or acknowledgement number."""

    def describe(number: int) -> str:
        row = some[[number]]
        if what == "ACK":
            return f"ACK of {int(rows.at('ack', row)[0])}"
        if passage is None:
            return f"{what} with seq {int(rows.at('seq', row)[0])}"
        ordinal = int(rows.at("ordinal", row)[0])
        return f"{what} {ordinal} with seq {int(rows.at('seq', row)[0])} at {passage.port}"

    return Samples(rows.at("conn", some), rows.at("time_ns", some), np.zeros(len(some)), describe)


def _becomes(conn: Array, state: Array, wanted: int) -> Ints:
    """Rows at which a connection's state becomes `wanted` from another one."""
    order = np.argsort(conn, kind="stable")
    state, conn = state[order], conn[order]
    turns = (state[1:] == wanted) & (state[:-1] != wanted) & (conn[1:] == conn[:-1])
    return np.sort(order[1:][turns])


def _first_of_conn(conn: Array, rows: Ints | None = None) -> Ints:
    """The first of some rows (None: of all) of each connection."""
    rows = np.arange(len(conn)) if rows is None else rows
    return np.sort(rows[np.unique(conn[rows], return_index=True)[1]])
