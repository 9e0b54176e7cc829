# SPDX-License-Identifier: Apache-2.0
"""Makes the packets table of a point out of the captures of its hosts and the telemetry of its switches.

The C code of native/ reads all of them at once and writes every column.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.records.errors import RecordsError
from testctl.records.flow_map import FlowMap
from testctl.records.native import library
from testctl.records.pcap import Capture, open_pcap
from testctl.records.reading import Reading, checked
from testctl.records.schema import PACKETS, RARE_COLUMNS, Array, Ints, names_column
from testctl.records.telemetry import Telemetry

_HEADERS = {4: 40, 6: 60}
"""Bytes of IP and TCP without options, by the version of IP."""
_PIECE = 1 << 16


def read_packets(
    captures: Mapping[str, Path], point: PointSpec, outcome: Outcome, switches: Mapping[str, Telemetry] | None = None
) -> tuple[pa.Table, list[str]]:
    """The packets table (schema PACKETS, sorted by time) and notes on what a reader should know.

    captures: entity -> pcap file; switches: switch -> its telemetry (a capture of it is then not read).
    Packets that belong to no flow of the point are left out.
    Raises RecordsError for a file that can't be read.
    """
    flows = FlowMap.of(point, outcome)
    telemetry = {} if switches is None else switches
    hosts = sorted(captures.keys() - telemetry.keys())
    opened: dict[str, Capture] = {}
    for where in hosts:
        try:
            opened[where] = open_pcap(captures[where])
        except RecordsError:
            checked(library(), list(opened.values()))  # of several wrong files the first
            raise
    places = sorted(telemetry)
    mtus = [min(int(point.settings.get(end, {}).get("mtu", 1500)) for end in flow.ends) for flow in point.flows]
    fits = [mtu - _HEADERS[flow.family] for mtu, flow in zip(mtus, point.flows, strict=True)]
    reading = Reading(library(), opened, {name: telemetry[name] for name in places}, flows, mtus, fits, outcome.t0_ns)
    columns = reading.run()
    notes = [f"{where}: the capture ends within a record, which is left out" for where in reading.truncated]
    for where in places:
        if telemetry[where].truncated:
            notes.append(f"{where}: the telemetry ends within a record, which is left out")
        if lost := telemetry[where].lost:
            notes.append(f"{where}: the telemetry lacks {lost} records, which found its ring full")
    for stream in reading.without_syn.tolist():
        flow, conn = flows.names[stream // (2 * reading.conns)], stream // 2 % reading.conns
        way = ("forward", "reverse")[stream % 2]
        notes.append(f"{flow}, connection {conn}, {way}: no SYN captured; numbers are relative to the first one seen")
    return _table(columns, reading.rare_rows, reading.rare, [*hosts, *places], flows.names), notes


def _table(columns: dict[str, Array], rows: Ints, rare: Array, wheres: list[str], flows: list[str]) -> pa.Table:
    """The table of columns in order of time; rare: (len(rows), 12), of RARE_COLUMNS at these rows."""
    count = len(columns["time_ns"])
    arrays: dict[str, pa.Array | pa.ChunkedArray] = {
        "where": names_column(columns["where"], wheres),
        "flow": names_column(columns["flow"], flows),
    }
    for number, (name, usual) in enumerate(RARE_COLUMNS.items()):
        arrays[name] = _mostly(usual, count, rows, rare[:, number])
    for field in PACKETS:
        if field.name not in arrays:
            buffer = pa.py_buffer(columns[field.name])
            arrays[field.name] = pa.Array.from_buffers(field.type, count, [None, buffer])
    return pa.table([arrays[name] for name in PACKETS.names], schema=PACKETS)


def _mostly(usual: int, count: int, rows: Ints, values: Array) -> pa.ChunkedArray:
    """A column with one value except at these ascending rows: pieces without any of them share their memory."""
    none = pa.array(np.full(min(count, _PIECE), usual, np.int64))
    firsts = np.searchsorted(rows, np.arange(0, max(count, 1) + _PIECE, _PIECE)).tolist()
    pieces: list[pa.Array] = []
    for begin, first, last in zip(range(0, max(count, 1), _PIECE), firsts, firsts[1:], strict=False):
        length = min(count - begin, _PIECE)
        piece = none[:length]
        if first < last and bool((values[first:last] != usual).any()):
            filled = np.full(length, usual, np.int64)
            filled[rows[first:last] - begin] = values[first:last]
            piece = pa.array(filled)
        pieces.append(piece)
    return pa.chunked_array(pieces, pa.int64())
