# SPDX-License-Identifier: Apache-2.0
"""Series that one row alone does not tell, by the metrics' own functions: latency, round trips, the sender's queue."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from testctl.metrics.core.latencies import certain_latencies
from testctl.metrics.core.queues import own_queue
from testctl.metrics.core.rtts import round_trips
from testctl.metrics.core.view import FlowView, view
from testctl.records import PACKETS, TCP_INFO, Records
from testctl.records.schema import Ints, names_column
from testctl.results import layout
from testctl.serve import listing
from testctl.serve.source import Source

LATENCY, RTT, OWN_QUEUE = "latency", "rtt", "own"

_COLUMNS = ("time_ns", "conn", "seq", "ack", "length", "segs", "wire_bytes", "flags", "tsval", "retrans", "role", "r")
_INFO = ("time_ns", "where", "flow", "conn", "bytes_sent")


def derive(source: Source, cursor: duckdb.DuckDBPyConnection) -> pa.Table:
    """Rows (series, line, t, y, r) of a point; y in ns or bytes, r counts a line's rows in order of time."""
    records = _records(source, cursor)
    parts = []
    for flow in source.flows[:8]:
        seen = view(records, flow.name)
        if not len(seen.at_sink):
            continue
        parts.append(_part(LATENCY, flow.name, *certain_latencies(seen)))
        parts.append(_part(OWN_QUEUE, flow.name, *own_queue(seen)))
        parts += _round_trips(seen)
    empty = _part("", "", np.empty(0, np.int64), np.empty(0, np.int64))
    return pa.concat_tables([empty, *parts]).unify_dictionaries()


def _round_trips(seen: FlowView) -> list[pa.Table]:
    trips = round_trips(seen)
    found = []
    for conn in np.unique(trips.conn):
        mine = trips.conn == conn
        order = np.argsort(trips.time_ns[mine], kind="stable")
        found.append(_part(RTT, f"{seen.name}/{conn}", trips.time_ns[mine][order], trips.rtt_ns[mine][order]))
    return found


def _part(series: str, line: str, t: Ints, y: Ints) -> pa.Table:
    names = {"series": series, "line": line}
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(t), np.int16)), pa.array([value]))
        for name, value in names.items()
    }
    numbers = {"t": t, "y": y, "r": np.arange(len(t))}
    return pa.table(columns | {name: pa.array(values.astype(np.int64)) for name, values in numbers.items()})


def _records(source: Source, cursor: duckdb.DuckDBPyConnection) -> Records:
    """The records with those packets and columns alone that these series need: hosts' packets, of flows' roles."""
    said = listing.own_json(source.path, "records.json")
    return Records(_packets(source, cursor), _tcp_info(source), {}, said["outcome"], said["point"])


def _packets(source: Source, cursor: duckdb.DuckDBPyConnection) -> pa.Table:
    assert source.packets is not None
    roles = sorted({role for flow in source.flows for role in flow.roles.values()})
    wanted = ", ".join(str(role) for role in roles)
    query = f"select {', '.join(_COLUMNS)} from {source.packets.name} where role in ({wanted})"
    rows = {name: np.asarray(column) for name, column in cursor.execute(query).fetchnumpy().items()}
    if (np.diff(rows["r"]) < 0).any():
        order = np.argsort(rows["r"])
        rows = {name: column[order] for name, column in rows.items()}
    keys, role = source.packets.keys, rows.pop("role")
    del rows["r"]
    columns: dict[str, pa.Array] = {name: pa.array(column) for name, column in rows.items()}
    for place, name in ((0, "where"), (1, "flow")):
        names = sorted({str(key[place]) for key in keys})
        columns[name] = names_column(np.array([names.index(str(key[place])) for key in keys])[role], names)
    columns["direction"] = pa.array(np.array([key[2] for key in keys])[role])
    columns["out"] = pa.array(np.array([key[3] for key in keys])[role])
    columns["ordinal"] = pa.array(np.full(len(role), -1))
    schema = pa.schema([PACKETS.field(name) for name in columns])
    return pa.table([column.cast(schema.field(name).type) for name, column in columns.items()], schema=schema)


def _tcp_info(source: Source) -> pa.Table:
    wanted = pa.schema([TCP_INFO.field(column) for column in _INFO])
    path = source.files.get(layout.TCP_INFO)
    return wanted.empty_table() if path is None else pq.read_table(path, columns=list(_INFO)).cast(wanted)
