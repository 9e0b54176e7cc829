# SPDX-License-Identifier: Apache-2.0
"""What a flow had queued in its own host, and under way between the two captures."""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.clocks import apart
from testctl.metrics.core.view import FlowView
from testctl.records.schema import Ints


def own_queue(flow: FlowView) -> tuple[Ints, Ints]:
    """(time_ns, payload bytes) that TCP had handed down and that had not left the host yet, by sample.

    tcp_info's bytes_sent less what the capture saw leave; the capture is behind the queueing
    discipline.  Packets dropped there stay in the number.  Summed over connections sampled at one
    time; empty without tcp_info, or when a connection's beginning was not captured.
    """
    none = np.empty(0, np.int64), np.empty(0, np.int64)
    if not flow.info or not len(flow.sent) or (flow.info["bytes_sent"] < 0).all():
        return none
    times, amounts = [], []
    for conn in np.unique(flow.info["conn"]):
        own = (flow.info["conn"] == conn) & (flow.info["bytes_sent"] >= 0)
        own_sent = flow.sent.of_conn(conn)
        if not len(own_sent) or int(own_sent["seq"][0]) != 0:
            return none
        left = np.cumsum(own_sent["length"], dtype=np.int64)
        before = np.searchsorted(own_sent["time_ns"], flow.info["time_ns"][own], side="right")
        times.append(flow.info["time_ns"][own])
        gone = np.where(before > 0, left[np.maximum(before - 1, 0)], 0)
        amounts.append(np.maximum(flow.info["bytes_sent"][own] - gone, 0))
    time_ns, place = np.unique(np.concatenate(times), return_inverse=True)
    total = np.zeros(len(time_ns), np.int64)
    np.add.at(total, place, np.concatenate(amounts))
    return time_ns, total


def under_way(flow: FlowView) -> tuple[Ints, Ints]:
    """(time_ns, wire bytes) that had left the sender and not reached the receiver, at every change.

    Lost packets stay in the number.  By the sender's clock.  Empty without both captures.
    """
    if not len(flow.out) or not len(flow.into):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    clocks = apart(flow)
    time_ns = np.concatenate([flow.out["time_ns"], flow.into["time_ns"] - (clocks.offset_ns if clocks else 0)])
    change = np.concatenate([flow.out["wire_bytes"], -flow.into["wire_bytes"]]).astype(np.int64)
    order = np.argsort(time_ns, kind="stable")
    return time_ns[order], np.cumsum(change[order])
