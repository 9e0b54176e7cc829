# SPDX-License-Identifier: Apache-2.0
"""Throughput: bits on the wire of the data direction that reached the receiver, per second.

Counted are all packets of the data direction with their Ethernet, IP and TCP headers (no preamble,
no frame check sequence), over the flow's active time: from the first data packet's departure to
the last one's arrival.
"""

from __future__ import annotations

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="throughput",
    help="bits on the wire that reached the receiver, over the flow's active time",
    values=(
        MetricInfo("throughput_bps", "bit/s", "wire bits of the data direction at the receiver per second", "higher"),
        MetricInfo("wire_bytes", "B", "wire bytes of the data direction at the receiver"),
        MetricInfo("active_s", "s", "first data packet's departure to the last one's arrival"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    start, end = seen.active_ns
    wire_bytes = int(seen.at_sink["wire_bytes"].sum())
    active_s = (end - start) / 1e9
    return {
        "throughput_bps": wire_bytes * 8 / active_s if active_s > 0 else NAN,
        "wire_bytes": wire_bytes,
        "active_s": active_s,
    }
