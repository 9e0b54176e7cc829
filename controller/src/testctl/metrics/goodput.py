# SPDX-License-Identifier: Apache-2.0
"""Goodput: payload bits that reached the receiver for the first time, per second of active time."""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, Rows, view
from testctl.records import Records

SPEC = MetricSpec(
    name="goodput",
    help="payload that reached the receiver, every byte counted once",
    needs="receiver",
    values=(
        MetricInfo("goodput_bps", "bit/s", "new payload bits after the first packet, per second of active_s", "higher"),
        MetricInfo("goodput_second_half_bps", "bit/s", "the same, over the second half of active_s alone", "higher"),
        MetricInfo("payload_bytes", "B", "payload bytes at the receiver, each counted once"),
    ),
)


def unique_bytes(rows: Rows) -> int:
    """Bytes that the packets cover together."""
    if not len(rows):
        return 0
    start, end = rows.start, rows.end
    if not bool((start[1:] >= start[:-1]).all()):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    covered = np.maximum.accumulate(end)
    begin = np.maximum(start[1:], covered[:-1])
    return int(end[0] - start[0] + np.maximum(end[1:] - begin, 0).sum())


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    start, end = seen.active_ns
    return {
        "goodput_bps": _rate(seen, start, end),
        "goodput_second_half_bps": _rate(seen, start + (end - start) // 2, end),
        "payload_bytes": unique_bytes(seen.arrived),
    }


def _rate(seen: FlowView, start: int, end: int) -> float:
    """New payload bits that arrived after `start` per second; NaN where no time passed."""
    if end <= start:
        return NAN
    before = int(np.searchsorted(seen.arrived["time_ns"], start, side="right"))
    first = Rows(seen.records, seen.arrived.index[:before])
    return (unique_bytes(seen.arrived) - unique_bytes(first)) * 8e9 / (end - start)
