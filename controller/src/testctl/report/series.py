# SPDX-License-Identifier: Apache-2.0
"""What the figures show, taken from a point's records: one Lane a connection, one rate a flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from testctl.report.stalls import Stall, read_stalls
from testctl.results import RunPoint

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MOST_LANES = 8
"""Connections that are drawn; more can't be told apart."""

_COLUMNS = [
    "time_ns",
    "where",
    "flow",
    "conn",
    "direction",
    "seq",
    "ack",
    "length",
    "wire_bytes",
    "flags",
    "ecn",
    "retrans",
    "queue_bytes",
    "out",
    "window",
    "segs",
]


def _none() -> Ints:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Lane:
    """One connection of a flow; times in ns, sequence numbers and sizes in bytes.

    data_*     first transmissions as they leave the sender; seq is the last byte + 1
    retrans_*  data sent before
    ack_*      cumulative ACKs as they arrive at the sender
    cwnd in segments, rtt in µs: samples of tcp_info at the sender
    latency_ns one-way latency of every packet that arrived, sorted
    """

    flow: str
    conn: int
    data_ns: Ints = field(default_factory=_none)
    data_seq: Ints = field(default_factory=_none)
    retrans_ns: Ints = field(default_factory=_none)
    retrans_seq: Ints = field(default_factory=_none)
    ack_ns: Ints = field(default_factory=_none)
    ack: Ints = field(default_factory=_none)
    info_ns: Ints = field(default_factory=_none)
    cwnd: Ints = field(default_factory=_none)
    ssthresh: Ints = field(default_factory=_none)
    rtt_us: Ints = field(default_factory=_none)
    latency_ns: Ints = field(default_factory=_none)

    @property
    def name(self) -> str:
        """The flow, with the connection's number if it is not the first."""
        return f"{self.flow} #{self.conn}" if self.conn else self.flow


@dataclass(frozen=True)
class FlowRate:
    """When a flow's bytes crossed the wire at the receiver (else at the sender)."""

    flow: str
    time_ns: Ints
    wire_bytes: Ints

    def bins(self, width_ns: int, end_ns: int) -> Floats:
        """Rate in bit/s of each bin [i*width, (i+1)*width) from 0; the bins cover all packets and `end_ns`."""
        index = np.maximum(self.time_ns, 0) // width_ns
        count = int(max(-(-end_ns // width_ns), index.max(initial=-1) + 1))
        sums = np.bincount(index, weights=self.wire_bytes, minlength=count)
        rates: Floats = sums * (8e9 / width_ns)
        return rates


@dataclass(frozen=True)
class Series:
    """All that is drawn of a point; `queue` is {where: (time_ns, bytes)}."""

    duration_ns: int
    rates: Sequence[FlowRate]
    lanes: Sequence[Lane]
    lanes_left_out: int
    queue: Mapping[str, tuple[Ints, Ints]]
    stalls: Sequence[Stall]


def read_series(point: RunPoint) -> Series | None:
    """The series of a point; None if it has no packets' records."""
    table = point.packets()
    if table is None or table.num_rows == 0:
        return None
    table = table.select([name for name in _COLUMNS if name in table.column_names])
    flows = list(point.point.get("flows", []))
    info = point.tcp_info()
    rates, lanes = [], []
    for flow in flows:
        rows = _Rows(table.filter(pc.equal(table["flow"], flow["name"])))
        if not len(rows.time):
            continue
        data = rows.data_direction()
        source, sink = (flow["from"], flow["to"]) if data == 0 else (flow["to"], flow["from"])
        rates.append(_rate(flow["name"], rows, data, source, sink))
        samples = (
            None
            if info is None
            else info.filter(pc.and_(pc.equal(info["flow"], flow["name"]), pc.equal(info["where"], source)))
        )
        lanes += [_lane(flow["name"], int(conn), rows, data, source, sink, samples) for conn in np.unique(rows.conn)]
    duration = int(point.point.get("duration_ns", 0)) or int(pc.max(table["time_ns"]).as_py())
    return Series(
        duration,
        rates,
        lanes[:MOST_LANES],
        max(len(lanes) - MOST_LANES, 0),
        _queue(table),
        read_stalls(point.stalls(), table),
    )


class _Rows:
    """Columns of a flow's packets as numpy arrays."""

    def __init__(self, table: pa.Table) -> None:
        self.time = _ints(table, "time_ns")
        self.conn = _ints(table, "conn")
        self.direction = _ints(table, "direction")
        self.seq = _ints(table, "seq")
        self.ack = _ints(table, "ack")
        self.length = _ints(table, "length")
        self.wire = _ints(table, "wire_bytes")
        self.retrans = _ints(table, "retrans").astype(bool)
        self._where = table["where"].cast(pa.string())

    def at(self, name: str) -> Flags:
        """Which rows were seen at this host."""
        there: Flags = pc.equal(self._where, name).to_numpy()
        return there

    def data_direction(self) -> int:
        """The direction that carries the data: the one with more payload."""
        back = self.direction == 1
        return int(self.length[back].sum() > self.length[~back].sum())


def _rate(flow: str, rows: _Rows, data: int, source: str, sink: str) -> FlowRate:
    there = rows.at(sink)
    mine = (there if there.any() else rows.at(source)) & (rows.direction == data)
    return FlowRate(flow, rows.time[mine], rows.wire[mine])


def _lane(flow: str, conn: int, rows: _Rows, data: int, source: str, sink: str, info: pa.Table | None) -> Lane:
    mine = rows.conn == conn
    forward = mine & (rows.direction == data) & (rows.length > 0)
    at_source, at_sink = rows.at(source), rows.at(sink)
    eye = at_source if (mine & at_source).any() else at_sink
    first, again = forward & eye & ~rows.retrans, forward & eye & rows.retrans
    acks = mine & eye & (rows.direction != data) & (rows.ack >= 0)
    samples: dict[str, Ints] = {}
    if info is not None:
        info = info.filter(pc.equal(info["conn"], conn))
        samples = {name: _ints(info, name) for name in ("time_ns", "snd_cwnd", "snd_ssthresh", "rtt")}
    return Lane(
        flow=flow,
        conn=conn,
        data_ns=rows.time[first],
        data_seq=rows.seq[first] + rows.length[first],
        retrans_ns=rows.time[again],
        retrans_seq=rows.seq[again] + rows.length[again],
        ack_ns=rows.time[acks],
        ack=rows.ack[acks],
        info_ns=samples.get("time_ns", _none()),
        cwnd=samples.get("snd_cwnd", _none()),
        ssthresh=samples.get("snd_ssthresh", _none()),
        rtt_us=samples.get("rtt", _none()),
        latency_ns=_latency(rows, forward & at_source & ~rows.retrans, forward & at_sink & ~rows.retrans),
    )


def _latency(rows: _Rows, sent: Flags, arrived: Flags) -> Ints:
    """Time from leaving the sender to arriving, of each packet's last byte; a merged arrival counts for all in it."""
    if not sent.any() or not arrived.any():
        return _none()
    order = np.argsort(rows.seq[arrived], kind="stable")
    start, when = rows.seq[arrived][order], rows.time[arrived][order]
    end = start + rows.length[arrived][order]
    last = rows.seq[sent] + rows.length[sent] - 1
    place = np.searchsorted(start, last, side="right") - 1
    good = (place >= 0) & (last < end[place])
    latency: Ints = np.sort(when[place[good]] - rows.time[sent][good])
    return latency[latency >= 0]


def _queue(table: pa.Table) -> dict[str, tuple[Ints, Ints]]:
    if "queue_bytes" not in table.column_names:
        return {}
    seen = table.filter(pc.greater_equal(table["queue_bytes"], 0))
    places = sorted(str(name) for name in pc.unique(seen["where"].cast(pa.string())).to_pylist())
    parts = {name: seen.filter(pc.equal(seen["where"], name)) for name in places}
    return {name: (_ints(part, "time_ns"), _ints(part, "queue_bytes")) for name, part in parts.items()}


def _ints(table: pa.Table, name: str) -> Ints:
    column: Any = table[name].cast(pa.int64())
    array: Ints = column.to_numpy()
    return array
