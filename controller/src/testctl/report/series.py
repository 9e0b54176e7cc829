# SPDX-License-Identifier: Apache-2.0
"""What the figures show, taken from a point's records: one Lane a connection, one rate a flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc

from testctl.curves import shown_ns
from testctl.metrics.core.bins import dense_bins
from testctl.metrics.core.latencies import certain_latencies
from testctl.metrics.core.passages import passages
from testctl.metrics.core.queues import own_queue
from testctl.metrics.core.rtts import round_trips
from testctl.metrics.core.view import FlowView, Rows, view
from testctl.records import Records
from testctl.records.schema import Array, Ints
from testctl.report.fates import Fates, lane_marks, read_fates
from testctl.report.stalls import Stall, read_stalls
from testctl.report.time_sequence import TimeSequence, time_sequence
from testctl.results import RunPoint

MAX_LANES = 8
"""Connections that are drawn; more can't be told apart."""


def _none() -> Ints:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Lane:
    """One connection of a flow; times in ns, sequence numbers in bytes.

    data_*     first transmissions as they leave the sender; seq is the byte behind the last
    retrans_*  data sent before
    ack_*      cumulative ACKs as they arrive at the sender
    cwnd in segments and srtt_us: samples of tcp_info at the sender; rtt_*: of every data packet
    fates      packets that a switch dropped or marked: {in words: (time_ns, sequence number)}
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
    srtt_us: Ints = field(default_factory=_none)
    rtt_at_ns: Ints = field(default_factory=_none)
    rtt_ns: Ints = field(default_factory=_none)
    fates: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The flow, with the connection's number if it is not the first."""
        return f"{self.flow} #{self.conn}" if self.conn else self.flow


@dataclass(frozen=True)
class FlowRate:
    """When a flow's bytes reached the receiver (else left the sender), and each packet's one-way latency, sorted."""

    flow: str
    time_ns: Ints
    wire_bytes: Ints
    latency_ns: Ints = field(default_factory=_none)

    def bins(self, width_ns: int, end_ns: int) -> Array:
        """Rate in bit/s of each bin [i*width, (i+1)*width) from 0; the bins cover all packets and `end_ns`."""
        last = int(self.time_ns[-1]) + 1 if len(self.time_ns) else 0
        count = -(-max(last, end_ns, 1) // width_ns)
        _, sums = dense_bins(self.time_ns, self.wire_bytes, width_ns, 0, count * width_ns)
        return np.asarray(sums * (8e9 / width_ns))


@dataclass(frozen=True)
class Series:
    """All that is drawn of a point over [0, duration_ns); `queue` is {name: (time_ns, bytes)}."""

    duration_ns: int
    rates: Sequence[FlowRate]
    lanes: Sequence[Lane]
    lanes_left_out: int
    queue: Mapping[str, tuple[Ints, Ints]]
    stalls: Sequence[Stall]
    fates: Fates
    time_sequences: Sequence[TimeSequence] = ()


def read_series(point: RunPoint) -> Series | None:
    """The series of a point; None if it has no packets' records."""
    records = point.records()
    if records is None or not records.packets.num_rows:
        return None
    rates, lanes, queue = [], [], {}
    for name in records.flows:
        flow = view(records, name)
        if not len(flow.at_sink):
            continue
        _, latency = certain_latencies(flow)
        rates.append(FlowRate(name, flow.at_sink["time_ns"], flow.at_sink["wire_bytes"], np.sort(latency)))
        lanes += [_lane(flow, int(conn)) for conn in np.unique(flow.at_sink["conn"])]
        time_ns, queued = own_queue(flow)
        if len(time_ns):
            queue[f"{name}, sender's own"] = (time_ns, queued)
    queue |= _port_queues(records)
    lanes.sort(key=lambda lane: lane.conn)  # the first connection of every flow before the second of any
    return Series(
        duration_ns=shown_ns(point.point, int(pc.max(records.packets["time_ns"]).as_py())),
        rates=rates,
        lanes=lanes[:MAX_LANES],
        time_sequences=[time_sequence(view(records, lane.flow), lane.conn) for lane in lanes[:MAX_LANES]],
        lanes_left_out=max(len(lanes) - MAX_LANES, 0),
        queue=queue,
        stalls=read_stalls(point.stalls(), records.packets),
        fates=read_fates(point, records),
    )


def _lane(flow: FlowView, conn: int) -> Lane:
    def mine(rows: Rows) -> Rows:
        return rows.where(rows["conn"] == conn) if len(rows) else rows

    data = mine(flow.sent if len(flow.sent) else flow.arrived)
    acks = mine(flow.acks_in if len(flow.acks_in) else flow.acks_out)
    again, end = data["retrans"].astype(bool), data["seq"] + data["length"]
    info = {name: column[flow.info["conn"] == conn] for name, column in flow.info.items()} if flow.info else {}
    trips = round_trips(flow)
    own = trips.conn == conn
    order = np.argsort(trips.time_ns[own], kind="stable")
    return Lane(
        flow=flow.name,
        conn=conn,
        data_ns=data["time_ns"][~again],
        data_seq=end[~again],
        retrans_ns=data["time_ns"][again],
        retrans_seq=end[again],
        ack_ns=acks["time_ns"],
        ack=acks["ack"],
        info_ns=info.get("time_ns", _none()),
        cwnd=info.get("snd_cwnd", _none()),
        srtt_us=info.get("rtt", _none()),
        rtt_at_ns=trips.time_ns[own][order],
        rtt_ns=trips.rtt_ns[own][order],
        fates=lane_marks(flow.records, flow.name, conn),
    )


def _port_queues(records: Records) -> dict[str, tuple[Ints, Ints]]:
    """The queue of each switch port, by telemetry: what each packet found, and where it had run empty in between."""
    parts: dict[str, list[tuple[Ints, Ints, Ints]]] = {}
    for name in records.flows:
        seen = view(records, name)
        for passage in (*passages(seen), *passages(seen, back=True)):
            rows = passage.queued
            parts.setdefault(passage.port, []).append((rows["time_ns"], rows["queue_bytes"], rows["left_ns"]))
    found = {}
    for port, of_flows in parts.items():
        time_ns, depth, left_ns = (np.concatenate(column) for column in zip(*of_flows, strict=True))
        order = np.argsort(time_ns, kind="stable")
        delay_ns = int(records.point.settings.get(port, {}).get("delay") or 0)
        if depth.any():
            found[port] = _with_empty(time_ns[order], depth[order].astype(np.int64), left_ns[order] - delay_ns)
    return found


def _with_empty(time_ns: Ints, depth: Ints, done_ns: Ints) -> tuple[Ints, Ints]:
    """The depths, and a zero where the last packet was done before the next came; done_ns < 0: it was not queued."""
    latest = np.maximum.accumulate(done_ns)
    empty = latest[:-1][(latest[:-1] < time_ns[1:]) & (depth[1:] == 0)]
    at = np.concatenate([time_ns, empty])
    order = np.argsort(at, kind="stable")
    return at[order], np.concatenate([depth, np.zeros(len(empty), np.int64)])[order]
