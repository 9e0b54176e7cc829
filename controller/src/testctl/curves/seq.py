# SPDX-License-Identifier: Apache-2.0
"""Sequence numbers over time, in the manner of tcptrace and of Figure 2 of the PRR paper (IMC 2011)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testctl.curves.core.spec import CurveSpec, Line
from testctl.metrics.core.latencies import lost_packets
from testctl.metrics.core.matching import wire
from testctl.metrics.core.memo import once
from testctl.metrics.core.passages import passages
from testctl.metrics.core.view import FlowView, Rows
from testctl.metrics.recovery.kernel_trace import traced_columns
from testctl.records.schema import CE, DROPPED, FATES, SACK_EDGES, Ints

SPEC = CurveSpec(
    name="seq",
    value="high",
    binned="last",
    by=("kind", "conn"),
    title="Time and sequence",
    of="the connection's bytes",
    kind="size",
    shape="packets",
    each="connection",
    large=True,
    stalls=True,
    place=20,
)

DATA, RETRANSMISSION, ACKS, CUT, MARKED, LOST = "data", "retransmission", "ACK", "dropped", "marked CE", "never arrived"
SACKED, EDGE, ALLOWED = "SACK block", "window", "snd.nxt + cwnd - pipe"

_SACK_BLOCKS = tuple(zip(SACK_EDGES[::2], SACK_EDGES[1::2], strict=True))
_KINDS = ["data", "retrans", "ack", "sack"]
_MARKS = {CUT: DROPPED, MARKED: tuple(FATES.index(name) for name in ("mark", "queue_mark"))}


def compute(flow: FlowView) -> pa.Table:
    """time_ns, conn, kind (data, retrans, ack, sack), low, high: a time-sequence plot at the sender.

    Every packet when the width is 0; otherwise the last of each kind, connection and bin.
    """
    sent, acks = flow.data, flow.acks
    kind = np.where(sent["retrans"], 1, 0)
    parts = [(sent["time_ns"], sent["conn"], kind, sent["seq"], sent["seq"] + sent["length"])]
    parts.append((acks["time_ns"], acks["conn"], np.full(len(acks), 2), acks["ack"], acks["ack"]))
    for low, high in _SACK_BLOCKS:
        some = acks.where(acks[low] >= 0) if len(acks) else acks
        parts.append((some["time_ns"], some["conn"], np.full(len(some), 3), some[low], some[high]))
    time_ns, conn, kind, low_edge, high_edge = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(time_ns, kind="stable")
    kinds = pa.DictionaryArray.from_arrays(kind[order].astype(np.int8), _KINDS)
    columns = {"time_ns": time_ns[order], "conn": conn[order], "kind": kinds}
    return pa.table(columns | {"low": low_edge[order], "high": high_edge[order]})


def lines(flow: FlowView, conn: int) -> list[Line]:
    """One connection at its sender (at its receiver where that alone was captured).

    Data at the byte behind its last, ACKs, what switches dropped or marked by telemetry (without it: what left and
    never arrived, and what arrived with CE).
    """
    data, acks = _of_conn(flow, conn)
    again = data["retrans"].astype(bool)
    shown = [_packets(DATA, data.where(~again)), _packets(RETRANSMISSION, data.where(again))]
    shown.append(Line(ACKS, acks["time_ns"], acks["ack"], packets=(flow.records, acks.index), columns=("flags", "ecn")))
    shown += _marks(flow, conn) if flow.records.switches else _by_captures(flow, conn)
    return [line for line in shown if len(line)]


def beside(flow: FlowView, conn: int, low_ns: int, high_ns: int) -> list[Line]:
    """SACK blocks when their ACK came, in [low, high), the highest byte that the receiver's window allowed, and, where
    the sender's kernel was traced, the byte up to which cwnd let it send."""
    data, acks = _of_conn(flow, conn)
    shown = [_sacked(acks.part(low_ns, high_ns)), _edge(flow, conn)]
    if flow.records.tcp_events is not None and len(data):
        events = traced_columns(flow.records, flow.name)
        own = events["conn"] == conn
        more = np.maximum(events["cwnd"] - events["pipe"], 0)[own] * int(data["length"].max())
        shown.append(_steps(ALLOWED, events["time_ns"][own], events["snd_nxt"][own] + more))
    return [line for line in shown if len(line)]


@once
def _of_conn(flow: FlowView, conn: int) -> tuple[Rows, Rows]:
    """The connection's data and ACKs."""
    return flow.data.of_conn(conn), flow.acks.of_conn(conn)


def _sacked(acks: Rows) -> Line:
    edges = _SACK_BLOCKS if len(acks) else ()
    blocks = [acks.where((acks[low] >= 0) & (acks[high] > acks[low])) for low, high in edges]
    if not any(len(rows) for rows in blocks):
        return Line(SACKED, np.empty(0, np.int64), np.empty(0, np.int64))
    parts = [(rows["time_ns"], rows[low], rows[high]) for rows, (low, high) in zip(blocks, edges, strict=True)]
    time_ns, low_edge, high_edge = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(time_ns, kind="stable")
    length = (high_edge - low_edge)[order]
    return Line(SACKED, time_ns[order], high_edge[order], {"length": length}, beside=True)


@once
def _edge(flow: FlowView, conn: int) -> Line:
    _, acks = _of_conn(flow, conn)
    return _steps(EDGE, acks["time_ns"], np.maximum.accumulate(acks["ack"] + acks["window"]))


def _packets(name: str, rows: Rows) -> Line:
    high, packets = rows["seq"] + rows["length"], (rows.records, rows.index)
    return Line(name, rows["time_ns"], high, packets=packets, columns=("length", "flags", "ecn"))


def _steps(name: str, time_ns: Ints, level: Ints) -> Line:
    """A level that holds until the next time: where it changes."""
    changes = np.diff(level, prepend=-1) != 0
    return Line(name, time_ns[changes], level[changes], beside=True)


def _marks(flow: FlowView, conn: int) -> list[Line]:
    """By telemetry, both ways: data stands at the byte behind its last, an ACK at its number."""
    records = flow.records
    parts = [passage.rows.index for passage in (*passages(flow), *passages(flow, back=True))]
    index = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)
    index = index[(records.column("conn")[index] == conn) & (records.column("fate")[index] > 0)]
    fate, length, time_ns = (records.column(name)[index] for name in ("fate", "length", "time_ns"))
    level = np.where(length > 0, records.column("seq")[index] + length, records.column("ack")[index])
    masks = {name: np.isin(fate, codes) & (level >= 0) for name, codes in _MARKS.items()}
    return [Line(name, time_ns[chosen], level[chosen]) for name, chosen in masks.items()]


def _by_captures(flow: FlowView, conn: int) -> list[Line]:
    """Data that left and never arrived, when it left, and data that arrived with CE."""
    if not (len(flow.sent) and len(flow.arrived)):
        return []
    rows = np.unique(wire(flow).row[lost_packets(flow)])
    lost = Rows(flow.records, flow.sent.index[rows]).of_conn(conn)
    marked = flow.arrived.where(flow.arrived["ecn"] == CE).of_conn(conn)
    return [Line(n, r["time_ns"], r["seq"] + r["length"]) for n, r in ((LOST, lost), (MARKED, marked))]
