# SPDX-License-Identifier: Apache-2.0
"""The one-way latency of every data packet, and which packets were lost."""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.available import of_flow
from testctl.metrics.core.clocks import apart
from testctl.metrics.core.matching import wire
from testctl.metrics.core.memo import once
from testctl.metrics.core.native import walks
from testctl.metrics.core.view import FlowView
from testctl.records.schema import Bools, Ints


def latencies(flow: FlowView) -> tuple[Ints, Ints]:
    """(departure, latency) in ns of every packet on the wire that arrived, in order of departure.

    What the two hosts' clocks are known to be apart is taken off.
    """
    packets, clocks = wire(flow), apart(flow)
    offset_ns = clocks.offset_ns if clocks is not None else 0
    sent_ns, arrived_ns = flow.sent["time_ns"], flow.arrived["time_ns"]
    return walks().latencies(packets.row, packets.arrival, sent_ns, arrived_ns, offset_ns)


def certain_latencies(flow: FlowView) -> tuple[Ints, Ints]:
    """`latencies`, to be shown as a whole: none when the clocks' error exceeds the median."""
    left, latency_ns = latencies(flow)
    clocks = apart(flow)
    if clocks is None or not len(left) or clocks.error_ns <= float(np.median(latency_ns)):
        return left, latency_ns
    return left[:0], latency_ns[:0]


@once
def lost_packets(flow: FlowView) -> Bools:
    """Which entries of `wire(flow)` never arrived; none without a capture of the receiver.

    Packets that could still be under way when the receiver's capture ended are not counted: those
    that left within four times the longest latency before its last packet, or after it where it has no data and
    data was acknowledged.
    """
    packets = wire(flow)
    missing = packets.arrival < 0
    if "receiver" not in of_flow(flow.records, flow.name):
        return np.zeros(len(missing), np.bool_)
    (left, latency), clocks = latencies(flow), apart(flow)
    last = max((int(rows["time_ns"][-1]) for rows in (flow.into, flow.acks_out) if len(rows)), default=0)
    last -= clocks.offset_ns if clocks is not None else 0
    if not len(left) and not (flow.acks_in["ack"] > 0).any():
        return missing
    sure = last - 4 * int(latency.max(initial=0))
    delivered = int(left.max()) if len(left) else 0
    rows = np.flatnonzero(missing)
    departed = flow.sent["time_ns"][packets.row[rows]]
    missing[rows] = (departed <= sure) | (departed < delivered)
    return missing
