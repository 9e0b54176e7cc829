# SPDX-License-Identifier: Apache-2.0
"""Makes the packets table of a point out of the captures of its hosts and the telemetry of its switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.records.flows import FlowMap
from testctl.records.headers import Segments, decode
from testctl.records.pcap import read_pcap
from testctl.records.schema import ACK, PACKETS, SACK_EDGES, SYN, Array, Ints, names_column
from testctl.records.sequence import SeenStreams, sent_before, stream_bases, unwrap
from testctl.records.telemetry import Telemetry
from testctl.records.telemetry import columns as telemetry_columns

_TIMESTAMPS = 12
_PLAIN = ("length", "headers", "flags", "ecn", "window", "tsval", "tsecr", "wscale", "seq", "ack")
_UNKNOWN: Mapping[str, Any] = {
    "queue_bytes": np.int32(-1),
    "fate": np.uint8(0),
    "left_ns": np.int64(-1),
    "ordinal": np.int32(-1),
    "first_ordinal": np.int32(-1),
}
"""What a capture does not say."""


@dataclass(frozen=True)
class _Joined:
    """Packets of flows, capture after capture and switch after switch."""

    columns: dict[str, Array]
    sack_row: Ints
    sack_edges: Ints


def read_packets(
    captures: Mapping[str, Path],
    point: PointSpec,
    outcome: Outcome,
    switches: Mapping[str, Telemetry] | None = None,
) -> tuple[pa.Table, list[str]]:
    """The packets table (schema PACKETS, sorted by time) and notes on what a reader should know.

    captures: entity -> pcap file; switches: switch -> its telemetry (a capture of it is then not read).
    Packets that belong to no flow of the point are left out.
    Raises RecordsError for a file that can't be read.
    """
    flows = FlowMap.of(point, outcome)
    notes: list[str] = []
    told = switches or {}
    hosts = sorted(captures.keys() - told.keys())
    parts = []
    for number, where in enumerate(hosts):
        capture = read_pcap(captures[where])
        if capture.truncated:
            notes.append(f"{where}: the capture ends within a record, which is left out")
        parts.append(_of_flows(decode(capture, flows.addresses), number, where, flows))
    for number, where in enumerate(sorted(told), len(hosts)):
        if told[where].truncated:
            notes.append(f"{where}: the telemetry ends within a record, which is left out")
        if told[where].lost:
            notes.append(f"{where}: the telemetry lacks {told[where].lost} records, which found its ring full")
        parts.append(_of_switch(told[where], number, flows))
    joined = _join(parts)
    wheres = [*hosts, *sorted(told)]
    return _table(joined, wheres, len(hosts), flows, point, outcome.t0_ns, notes), notes


def _of_flows(segments: Segments, number: int, where: str, flows: FlowMap) -> _Joined:
    flow, conn = flows.of_ports(segments.sport, segments.dport)
    direction = flows.direction(flow, segments.src, segments.dst)
    mine = (flow >= 0) & (direction >= 0)
    here = flows.hosts.index(where) if where in flows.hosts else -2
    columns = {name: getattr(segments, name) for name in _PLAIN}
    columns |= {"flow": flow, "conn": conn, "direction": direction, "out": segments.src == here}
    columns["time_ns"] = segments.time_ns
    rows, edges = segments.sack_row, segments.sack_edges
    if not mine.all():
        columns = {name: column[mine] for name, column in columns.items()}
        position = np.cumsum(mine) - 1
        kept = mine[rows]
        rows, edges = position[rows[kept]], edges[kept]
    count = len(columns["flow"])
    columns["where"] = np.full(count, number, np.int16)
    columns |= {name: np.full(count, value) for name, value in _UNKNOWN.items()}
    return _Joined(columns, rows, edges)


def _of_switch(telemetry: Telemetry, number: int, flows: FlowMap) -> _Joined:
    place = (telemetry.fields["flow"].astype(np.int64) - 1) >> 1
    flow, conn = flows.of_places()
    rows = np.flatnonzero((place >= 0) & (place < len(flow)))
    columns = telemetry_columns(telemetry, rows)
    columns |= {"flow": flow[place[rows]], "conn": conn[place[rows]]}
    columns["where"] = np.full(len(rows), number, np.int16)
    return _Joined(columns, np.empty(0, np.int64), np.empty((0, 8), np.int64))


def _join(parts: list[_Joined]) -> _Joined:
    if not parts:
        names = (*_PLAIN, *_UNKNOWN, "flow", "conn", "direction", "out", "time_ns", "where")
        parts = [_Joined({n: np.empty(0, np.int64) for n in names}, np.empty(0, np.int64), np.empty((0, 8), np.int64))]
    starts = np.cumsum([0] + [len(part.columns["flow"]) for part in parts])
    return _Joined(
        {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns},
        np.concatenate([part.sack_row + start for part, start in zip(parts, starts, strict=False)]),
        np.concatenate([part.sack_edges for part in parts]),
    )


def _table(
    joined: _Joined,
    wheres: list[str],
    hosts: int,
    flows: FlowMap,
    point: PointSpec,
    t0_ns: int,
    notes: list[str],
) -> pa.Table:
    """The table; the first `hosts` of `wheres` were captured, the others are switches."""
    raw = joined.columns
    captured = raw["where"] < hosts
    conns = max((int(p) for p in flows.parallel), default=1)
    streams = max(len(flows.names), 1) * conns * 2
    stream = (raw["flow"].astype(np.int64) * conns + raw["conn"]) * 2 + raw["direction"]
    series = SeenStreams.of(raw["where"], stream, streams)
    base, with_syn = stream_bases(raw["time_ns"], stream, streams, raw["seq"], raw["ack"], raw["flags"])
    seen = np.zeros(streams, np.bool_)
    seen[stream] = True
    _note_bases(notes, np.flatnonzero(seen & ~with_syn), flows.names, conns)

    has_ack = raw["flags"] & ACK > 0
    back = base[stream ^ 1]
    seq = unwrap(series, raw["seq"], base[stream])
    ack = unwrap(series, np.where(has_ack, raw["ack"], back.astype(np.uint32)), back)
    retrans = sent_before(series, seq, raw["length"], raw["flags"])
    segs = _segs(raw, captured, point)
    done: dict[str, Array] = {
        "time_ns": raw["time_ns"] - t0_ns,
        "conn": raw["conn"].astype(np.int16),
        "direction": raw["direction"].astype(np.int8),
        "seq": seq,
        "ack": np.where(has_ack, ack, -1),
        "length": raw["length"].astype(np.int32),
        "segs": segs.astype(np.int16),
        "wire_bytes": (raw["length"] + segs * raw["headers"]).astype(np.int32),
        "flags": raw["flags"].astype(np.uint8),
        "ecn": raw["ecn"].astype(np.uint8),
        "window": _windows(raw, captured, stream, streams),
        "tsval": raw["tsval"],
        "tsecr": raw["tsecr"],
        "retrans": retrans,
        "out": raw["out"].astype(np.bool_),
        "left_ns": np.where(raw["left_ns"] < 0, -1, raw["left_ns"] - t0_ns),
        **{name: raw[name] for name in ("queue_bytes", "fate", "ordinal", "first_ordinal")},
    }
    order = np.argsort(done["time_ns"], kind="stable")
    arrays = {name: pa.array(column[order]) for name, column in done.items()}
    arrays["where"] = names_column(raw["where"][order], wheres)
    arrays["flow"] = names_column(raw["flow"][order], flows.names)
    arrays |= _sack_columns(joined, raw["ack"], done["ack"], order)
    return pa.table([arrays[name] for name in PACKETS.names], schema=PACKETS)


def _note_bases(notes: list[str], streams: Ints, names: list[str], conns: int) -> None:
    for stream in streams:
        flow, conn = names[int(stream) // (2 * conns)], int(stream) // 2 % conns
        way = ("forward", "reverse")[int(stream) % 2]
        notes.append(f"{flow}, connection {conn}, {way}: no SYN captured; numbers are relative to the first one seen")


def _windows(raw: Mapping[str, Array], captured: Array, stream: Ints, streams: int) -> Ints:
    """Advertised windows in bytes: scaled when both SYNs were seen to offer it (RFC 7323, 2.2).

    Only captures show the options of a SYN.
    """
    scale = np.full(streams, -1, np.int64)
    syn = np.flatnonzero(raw["flags"] & SYN)
    shown = syn[captured[syn]]
    scale[stream[shown]] = raw["wscale"][shown]
    both = (scale >= 0) & (scale[np.arange(streams) ^ 1] >= 0)
    windows = raw["window"].astype(np.int64) << np.where(both, scale, 0)[stream]
    windows[syn] = raw["window"][syn]
    return np.asarray(windows)


def _segs(raw: Mapping[str, Array], captured: Array, point: PointSpec) -> Array:
    """Packets on the wire that each record stands for: ceil(payload / mss); a switch's are always one.

    mss is the largest payload that another capture shows of that flow and direction, unless
    that one is of merged packets too: then it is what the MTU leaves after the headers.
    """
    segs = np.ones(len(raw["flow"]), np.int32)
    for number, flow in enumerate(point.flows):
        mtu = min(int(point.settings.get(end, {}).get("mtu", 1500)) for end in flow.ends)
        mine = captured & (raw["flow"] == number)
        long = np.flatnonzero(mine & (raw["length"] > mtu - 40 - _TIMESTAMPS))
        if not len(long):
            continue
        for direction in (0, 1):
            same = mine & (raw["direction"] == direction)
            rows = long[raw["direction"][long] == direction]
            for where in np.unique(raw["where"][rows]):
                here = rows[raw["where"][rows] == where]
                others = raw["length"][same & (raw["where"] != where)]
                fits = mtu - 40  # the headers of a packet without options
                if len(others) and 0 < int(others.max()) <= fits:
                    mss = np.full(len(here), int(others.max()))
                else:
                    mss = mtu + 14 - raw["headers"][here]
                segs[here] = np.maximum(-(-raw["length"][here] // np.maximum(mss, 1)), 1)
    return segs


def _sack_columns(joined: _Joined, wire_ack: Array, ack: Ints, order: Ints) -> dict[str, pa.Array]:
    """The edges of SACK blocks relative to the acknowledgement they came with."""
    count, rows = len(order), joined.sack_row
    if not len(rows):
        none = pa.array(np.full(count, -1, np.int64))
        return dict.fromkeys(SACK_EDGES, none)
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    columns = {}
    for number, name in enumerate(SACK_EDGES):
        there = joined.sack_edges[:, number] >= 0
        ahead = joined.sack_edges[there, number] - wire_ack[rows[there]].astype(np.int64)
        column = np.full(count, -1, np.int64)
        column[rank[rows[there]]] = ack[rows[there]] + ahead.astype(np.uint32).view(np.int32)
        columns[name] = pa.array(column)
    return columns
