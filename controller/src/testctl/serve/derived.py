# SPDX-License-Identifier: Apache-2.0
"""Series that one row alone does not tell, by the metrics' own functions: latency, round trips, the sender's queue."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from testctl.metrics.core.latencies import certain_latencies
from testctl.metrics.core.queues import own_queue
from testctl.metrics.core.rtts import round_trips
from testctl.metrics.core.view import FlowView, view
from testctl.records import PACKETS, TCP_INFO, Records
from testctl.records.schema import Ints
from testctl.results import layout
from testctl.serve import listing
from testctl.serve.source import Source

LATENCY, RTT, OWN_QUEUE = "latency", "rtt", "own"

_COLUMNS = (
    "time_ns", "where", "flow", "conn", "direction", "seq", "ack", "length", "segs", "wire_bytes", "flags", "tsval",
    "tsecr", "retrans", "out", "ordinal",
)  # fmt: skip
_INFO = ("time_ns", "where", "flow", "conn", "bytes_sent")


def derive(source: Source) -> pa.Table:
    """Rows (series, line, t, y, r) of a point; y in ns or bytes, r counts a line's rows in order of time."""
    records = _records(source)
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


def _records(source: Source) -> Records:
    """The records with those columns alone that these series need: a third of the time to read."""
    packets = _table(source, layout.PACKETS, PACKETS, _COLUMNS)
    tcp_info = _table(source, layout.TCP_INFO, TCP_INFO, _INFO)
    said = listing.own_json(source.path, "records.json")
    return Records(packets, tcp_info, {}, said["outcome"], said["point"])


def _table(source: Source, name: str, schema: pa.Schema, columns: tuple[str, ...]) -> pa.Table:
    wanted = pa.schema([schema.field(column) for column in columns])
    path = source.files.get(name)
    if path is None:
        return wanted.empty_table()
    return pq.read_table(path, columns=list(columns)).cast(wanted)
