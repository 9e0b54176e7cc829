# SPDX-License-Identifier: Apache-2.0
"""Goodput: payload bits that reached the receiver for the first time, per second of active time."""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.memo import once
from testctl.metrics.core.native import walks
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, Rows, view
from testctl.records import Records

SPEC = MetricSpec(
    name="goodput",
    help="payload that reached the receiver, every byte counted once",
    needs="receiver",
    values=(
        MetricInfo("goodput_bps", "bit/s", "new payload bits after the first packet, per second of active_s", "higher"),
        MetricInfo("goodput_second_half_bps", "bit/s", "as goodput_bps, over the second half of active_s", "higher"),
        MetricInfo("payload_bytes", "B", "payload bytes at the receiver, each counted once"),
    ),
)


def unique_bytes(rows: Rows) -> int:
    """Bytes that the packets cover together."""
    return walks().covered(rows.start, rows.end) if len(rows) else 0


@once
def arrived_bytes(seen: FlowView) -> int:
    """Bytes that reached the receiver, each counted once."""
    return unique_bytes(seen.arrived)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    start, end = seen.active_ns
    return {
        "goodput_bps": _rate(seen, start, end),
        "goodput_second_half_bps": _rate(seen, start + (end - start) // 2, end),
        "payload_bytes": arrived_bytes(seen),
    }


def _rate(seen: FlowView, start: int, end: int) -> float:
    """New payload bits that arrived after `start` per second; NaN where no time passed."""
    if end <= start:
        return NAN
    arrived = seen.arrived
    before = int(np.searchsorted(arrived["time_ns"], start, side="right"))
    first = walks().covered(arrived.start[:before], arrived.end[:before]) if before else 0
    return (arrived_bytes(seen) - first) * 8e9 / (end - start)
