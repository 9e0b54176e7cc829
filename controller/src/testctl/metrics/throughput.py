# SPDX-License-Identifier: Apache-2.0
"""Throughput: bits on the wire of the data direction that reached the receiver, per second.

Counted are all packets of the data direction with their Ethernet, IP and TCP headers (no preamble,
no frame check sequence).  The active time is from the first data packet's arrival to the last one's, both at
the receiver; the rate is of what arrived in it after the first packet, so it is never above the link's.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.spec import MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import Rows, view
from testctl.records import Records

SPEC = MetricSpec(
    name="throughput",
    help="bits on the wire that reached the receiver, over the flow's active time",
    needs="receiver",
    values=(
        MetricInfo(
            "throughput_bps", "bit/s", "wire bits that arrived after the first data packet, per second", "higher"
        ),
        MetricInfo("wire_bytes", "B", "wire bytes of the data direction at the receiver"),
        MetricInfo("active_s", "s", "first data packet's arrival to the last one's; NaN with fewer than two"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    return {
        "throughput_bps": arrived_bytes(seen.into, *seen.active_ns) * 8 / seen.active_s,
        "wire_bytes": int(seen.into["wire_bytes"].sum()),
        "active_s": seen.active_s,
    }


def arrived_bytes(rows: Rows, start_ns: int, end_ns: int, overhead: int = 0) -> int:
    """Wire bytes that arrived after start_ns, up to end_ns; each packet counts `overhead` more."""
    low, high = np.searchsorted(rows["time_ns"], [start_ns, end_ns], side="right")
    more = overhead * int(rows["segs"][low:high].sum()) if overhead else 0
    return int(rows["wire_bytes"][low:high].sum()) + more


def frame_of(rows: Rows) -> int:
    """Bytes of the largest packet on the wire; 0 without any."""
    return int((-(-rows["wire_bytes"] // rows["segs"])).max()) if len(rows) else 0
