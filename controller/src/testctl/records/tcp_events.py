# SPDX-License-Identifier: Apache-2.0
"""Reads what a kernel traced of its TCP: struct tcp_event (tcp_event.h of the agents) after struct tcp_event.

The collector's result has their number, the layout and the clock; the outcome keeps it under notes as
"HOST: tcp_events":

    {"layout": 2, "records": n, "lost": n, "clock_offset_ns": realtime - monotonic}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.records.cc_state import MOST_RATE, cc_columns
from testctl.records.errors import RecordsError
from testctl.records.files import read_records
from testctl.records.flow_map import FlowMap
from testctl.records.schema import (
    TCP_EVENT_NAMES,
    TCP_EVENT_SOURCES,
    TCP_EVENTS,
    TCP_LIMITS,
    TCP_STATES,
    Array,
    names_column,
    table_of,
)

LAYOUTS = {
    2: np.dtype(
        [
            *((name, "<u8") for name in ("time_ns", "acked_bytes", "pacing_rate", "delivery_rate")),
            *((name, "<u4") for name in ("flight_bytes", "cwnd", "ssthresh", "pipe", "prior_pipe", "delivered")),
            *((name, "<u4") for name in ("srtt_us", "length")),
            ("cc", "<u4", (5,)),
            *((name, "<u2") for name in ("local_port", "remote_port", "segs")),
            *((name, "u1") for name in ("kind", "state", "limit", "cc_kind")),
            ("spare", "<u2"),
        ]
    )
}
"""The struct by its number, TCP_EVENT_LAYOUT."""

_KNOWN = {
    "kind": range(len(TCP_EVENT_NAMES)),
    "state": range(len(TCP_STATES)),
    "limit": range(len(TCP_LIMITS)),
}
_UNLIMITED = 2**64 - 1

_SAME = ("cwnd", "ssthresh", "pipe", "prior_pipe", "delivered")


def read_tcp_events(files: Mapping[str, Path], point: PointSpec, outcome: Outcome) -> tuple[pa.Table | None, list[str]]:
    """The table (schema TCP_EVENTS, sorted by time; None: nobody traced) and notes.

    files: host -> file.  Connections that belong to no flow are left out.  Raises RecordsError: an unknown layout,
    an unknown kind, state or limit, more events than were reported.
    """
    if not files:
        return None, []
    flows = FlowMap.of(point, outcome)
    t0_ns = outcome.t0_ns
    notes: list[str] = []
    wheres = sorted(files)
    parts: list[dict[str, Array]] = []
    for number, where in enumerate(wheres):
        result = outcome.result_of(where, "tcp_events")
        events = _events(files[where], result, where, notes)
        flow, conn = flows.of_ports(events["local_port"], events["remote_port"])
        events, conn, flow = events[flow >= 0], conn[flow >= 0], flow[flow >= 0]
        columns = _columns(events, flows.by_port[events["remote_port"]] == flow)
        columns["time_ns"] += int(result.get("clock_offset_ns", 0)) - t0_ns
        parts.append(columns | {"flow": flow, "conn": conn, "where": np.full(len(events), number, np.int16)})
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["time_ns"], kind="stable")
    arrays = {name: column[order] for name, column in joined.items()}
    named = {
        "where": names_column(arrays["where"], wheres),
        "flow": names_column(arrays["flow"], flows.names),
        "event": names_column(arrays["event"], list(TCP_EVENT_NAMES)),
        "source": names_column(np.full(len(order), TCP_EVENT_SOURCES.index("kernel")), list(TCP_EVENT_SOURCES)),
    }
    return table_of(TCP_EVENTS, arrays | named), notes


def _events(path: Path, result: Mapping[str, Any], where: str, notes: list[str]) -> Array:
    """The events of a file, whole ones only; missing ones are noted."""
    kind = LAYOUTS.get(result.get("layout", 0))
    if kind is None:
        ours = ", ".join(map(str, LAYOUTS))
        raise RecordsError(path, f"want events of layout {ours}; the collector has {result.get('layout', 'nothing')}")
    events, cut = read_records(path, kind)
    count = len(events)
    written = int(result.get("records", count))
    if count > written:
        raise RecordsError(path, f"want {written} events of {kind.itemsize} bytes, as reported; got {count}")
    for field, known in _KNOWN.items():
        odd = np.flatnonzero(~np.isin(events[field], known))
        if len(odd):
            at = int(odd[0]) * kind.itemsize
            wanted = f"one of {', '.join(map(str, known))}"
            raise RecordsError(path, f"{field}: want {wanted}; got {events[field][odd[0]]}", at)
    if count < written or cut:
        notes.append(f"{where}: tcp_events is cut off: want {written} events, got {count}")
    if lost := int(result.get("lost", 0)):
        notes.append(f"{where}: tcp_events lacks {lost} packets or events: no buffer space, or not reported")
    return events


def _columns(events: Array, connected: Array) -> dict[str, Array]:
    """`connected`: where this end opened the connection, whose SYN the kernel counts among its bytes."""
    una = events["acked_bytes"].astype(np.int64) - connected
    return {
        "time_ns": events["time_ns"].astype(np.int64),
        "event": events["kind"].astype(np.int16),
        "snd_una": una,
        "snd_nxt": una + events["flight_bytes"],
        **{name: events[name].astype(np.int64) for name in _SAME},
        "srtt_us": np.where(events["srtt_us"] > 0, events["srtt_us"].astype(np.int64), -1),
        "state": events["state"].astype(np.int8),
        "pacing_rate_bps": _bits(events["pacing_rate"]),
        "delivery_rate_bps": _bits(events["delivery_rate"]),
        "limited_by": events["limit"].astype(np.int8),
        **cc_columns(events["cc_kind"], events["cc"]),
    }


def _bits(rate: Array) -> Array:
    """Bytes/s as bits/s; -1 where there is no rate, or no limit."""
    known = (rate > 0) & (rate < _UNLIMITED)
    return np.where(known, np.minimum(rate, MOST_RATE).astype(np.int64) * 8, -1)
