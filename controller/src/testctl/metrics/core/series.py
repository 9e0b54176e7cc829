# SPDX-License-Identifier: Apache-2.0
"""A metric of a flow over time, for figures and for `testctl series`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from testctl.metrics.core.bins import dense_bins
from testctl.metrics.core.latencies import certain_latencies
from testctl.metrics.core.passages import data_passages
from testctl.metrics.core.queues import own_queue, under_way
from testctl.metrics.core.rtts import round_trips
from testctl.metrics.core.view import FlowView, view
from testctl.metrics.recovery.events import tcp_events
from testctl.metrics.recovery.kernel_trace import traced_events
from testctl.records import Records
from testctl.records.schema import SACK_EDGES, Array, Ints, numbers_of


def throughput(flow: FlowView, bin_ns: int) -> pa.Table:
    """time_ns (begin of the bin), wire_bytes, bps: the data direction at the receiver."""
    rows = flow.at_sink
    edges, sums = dense_bins(rows["time_ns"], rows["wire_bytes"], bin_ns)
    return pa.table({"time_ns": edges[:-1], "wire_bytes": sums, "bps": sums * 8e9 / bin_ns})


def cwnd(flow: FlowView, bin_ns: int) -> pa.Table:
    """time_ns, conn, cwnd, ssthresh (packets), srtt_us, unacked, by tcp_info; the last sample of each bin."""
    names = {"cwnd": "snd_cwnd", "ssthresh": "snd_ssthresh", "srtt_us": "rtt", "unacked": "unacked"}
    if not flow.info:
        return pa.table({name: np.empty(0, np.int64) for name in ("time_ns", "conn", *names)})
    time_ns, conn = flow.info["time_ns"], flow.info["conn"].astype(np.int64)
    keep = np.arange(len(time_ns))
    if bin_ns > 0:
        keep = np.lexsort((time_ns, conn))
        group = time_ns[keep] // bin_ns
        last = np.append((np.diff(group) != 0) | (np.diff(conn[keep]) != 0), True)
        keep = np.sort(keep[last])
    columns = {"time_ns": time_ns[keep], "conn": conn[keep]}
    return pa.table(columns | {name: flow.info[field][keep] for name, field in names.items()})


def _binned(name: str, time_ns: Ints, value: Array, bin_ns: int, unit_ns: float) -> pa.Table:
    """time_ns, NAME (mean) and NAME_max of every bin that has samples; every sample when bin_ns is 0."""
    order = np.argsort(time_ns, kind="stable")
    time_ns, value = time_ns[order], value[order] / unit_ns
    if bin_ns <= 0 or not len(time_ns):
        return pa.table({"time_ns": time_ns, name: value, f"{name}_max": value})
    number = time_ns // bin_ns
    first = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    count = np.diff(np.append(first, len(number)))
    mean, most = np.add.reduceat(value, first) / count, np.maximum.reduceat(value, first)
    return pa.table({"time_ns": number[first] * bin_ns, name: mean, f"{name}_max": most})


def rtt(flow: FlowView, bin_ns: int) -> pa.Table:
    """time_ns (of the ACK), rtt_us, rtt_us_max: mean and largest sample of each bin."""
    samples = round_trips(flow)
    return _binned("rtt_us", samples.time_ns, samples.rtt_ns, bin_ns, 1e3)


def latency(flow: FlowView, bin_ns: int) -> pa.Table:
    """time_ns (of departure), latency_us, latency_us_max: mean and largest of each bin."""
    left, latency_ns = certain_latencies(flow)
    return _binned("latency_us", left, latency_ns, bin_ns, 1e3)


def seq(flow: FlowView, bin_ns: int) -> pa.Table:
    """time_ns, conn, kind (data, retrans, ack, sack), low, high: a time-sequence plot at the sender.

    Every packet when bin_ns is 0; otherwise the last of each kind, connection and bin.
    """
    sent, acks = flow.sent if len(flow.sent) else flow.arrived, flow.acks_in if len(flow.acks_in) else flow.acks_out
    end = sent["seq"] + sent["length"]
    parts = [(sent["time_ns"], sent["conn"], np.where(sent["retrans"], 1, 0), sent["seq"], end)]
    parts.append((acks["time_ns"], acks["conn"], np.full(len(acks), 2), acks["ack"], acks["ack"]))
    for low, high in zip(SACK_EDGES[::2], SACK_EDGES[1::2], strict=True):
        some = np.flatnonzero(acks[low] >= 0)
        parts.append(
            (acks["time_ns"][some], acks["conn"][some], np.full(len(some), 3), acks[low][some], acks[high][some])
        )
    time_ns, conn, kind, low_edge, high_edge = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(time_ns, kind="stable")
    if bin_ns > 0 and len(order):
        number, group = time_ns[order] // bin_ns, kind[order] * 1024 + conn[order]
        by_group = np.lexsort((np.arange(len(order)), number, group))
        last = np.append((np.diff(number[by_group]) != 0) | (np.diff(group[by_group]) != 0), True)
        order = order[np.sort(by_group[last])]
    kinds = pa.DictionaryArray.from_arrays(kind[order].astype(np.int8), ["data", "retrans", "ack", "sack"])
    columns = {"time_ns": time_ns[order], "conn": conn[order], "kind": kinds}
    return pa.table(columns | {"low": low_edge[order], "high": high_edge[order]})


def queue(flow: FlowView, bin_ns: int) -> pa.Table:
    """time_ns, place, bytes: the largest of each bin.

    place: own, in the sender's host; network, between the captures; or the switch port that data leaves by.
    """
    found = {"own": own_queue(flow), "network": under_way(flow)}
    for passage in data_passages(flow):
        found[passage.port] = passage.queued["time_ns"], passage.queued["queue_bytes"]
    parts = []
    for place, (time_ns, amount) in enumerate(found.values()):
        if bin_ns > 0 and len(time_ns):
            number = time_ns // bin_ns
            first = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
            time_ns, amount = number[first] * bin_ns, np.maximum.reduceat(amount, first)
        parts.append((time_ns, np.full(len(time_ns), place, np.int8), amount))
    time_ns, places, amount = (np.concatenate(column) for column in zip(*parts, strict=True))
    names = pa.DictionaryArray.from_arrays(places.astype(np.int8), list(found))
    return pa.table({"time_ns": time_ns, "place": names, "bytes": amount})


def tcp(flow: FlowView, bin_ns: int) -> pa.Table:
    """TCP's internals at every ACK and transmission, by the sender's kernel and its capture; columns of TCP_EVENTS.

    In order of time; with a width, the last event of each bin, connection and source.
    """
    traced, captured = traced_events(flow.records, flow.name), tcp_events(flow.records, flow.name)
    if not traced.num_rows and bin_ns <= 0:
        return captured
    table = pa.concat_tables([traced, captured]).unify_dictionaries().combine_chunks()
    if not table.num_rows:
        return captured
    time_ns, conn = numbers_of(table, "time_ns"), numbers_of(table, "conn").astype(np.int64)
    source = np.repeat([0, 1], [traced.num_rows, captured.num_rows])
    order = np.argsort(time_ns, kind="stable")
    if bin_ns > 0:
        by_group = np.lexsort((time_ns, conn, source))
        number, group = time_ns[by_group] // bin_ns, (source * 2**16 + conn)[by_group]
        last = by_group[np.append((np.diff(number) != 0) | (np.diff(group) != 0), True)]
        order = order[np.isin(order, last)]
    return table.take(pa.array(order))


SERIES: dict[str, Callable[[FlowView, int], pa.Table]] = {
    made.__name__: made for made in (throughput, cwnd, rtt, latency, seq, queue, tcp)
}


def series(records: Records, flow: str, metric: str, bin_ns: int) -> pa.Table:
    """A table over time; its columns are said at the function named like the metric.

    bin_ns 0 gives every sample (not for throughput).  Raises KeyError for an unknown metric or flow,
    ValueError for a bin width that can't be.
    """
    if metric not in SERIES:
        raise KeyError(f"series {metric}: want one of {', '.join(SERIES)}")
    if bin_ns < 0:
        raise ValueError(f"want a bin width of 0 ns or more; got {bin_ns}")
    return SERIES[metric](view(records, flow), bin_ns)
