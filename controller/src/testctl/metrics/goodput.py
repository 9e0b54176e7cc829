# SPDX-License-Identifier: Apache-2.0
"""Goodput: payload bits that reached the receiver for the first time, per second of active time."""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import Rows, view
from testctl.records import Records

SPEC = MetricSpec(
    name="goodput",
    help="payload that reached the receiver, every byte counted once",
    values=(
        MetricInfo("goodput_bps", "bit/s", "payload bits, each counted once, per second of active time", "higher"),
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
    payload = unique_bytes(seen.arrived if len(seen.arrived) else seen.sent)
    active_s = (end - start) / 1e9
    return {"goodput_bps": payload * 8 / active_s if active_s > 0 else NAN, "payload_bytes": payload}
