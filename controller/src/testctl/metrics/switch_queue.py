# SPDX-License-Identifier: Apache-2.0
"""Switch queue: how many bytes a flow's data packets found waiting at the switch port they leave by.

By telemetry, at the port of the flow's way where it is longest on average.  Without telemetry it is
worked out from the captures: (latency - least latency) * capacity / 8, which takes all that delays a
packet between the hosts for one queue.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.capacity import capacity_bps
from testctl.metrics.core.latencies import latencies
from testctl.metrics.core.passages import data_passages
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, view
from testctl.records import Records
from testctl.records.schema import Array

_PARTS = {"mean": "mean over data packets", "p99": "99th percentile of data packets", "max": "largest"}

SPEC = MetricSpec(
    name="switch_queue",
    help="bytes waiting at the switch port, as the flow's data found them",
    values=(
        *(
            MetricInfo(f"switch_queue_{part}_bytes", "B", f"{text}; NaN unknown", "lower")
            for part, text in _PARTS.items()
        ),
        MetricInfo(
            "switch_queue_where",
            "",
            'the port, such as "switch:receiver"; captures: worked out from latencies',
            text=True,
        ),
    ),
)


def depths(flow: FlowView) -> tuple[Array, str]:
    """(bytes found by each data packet, where)"""
    found = [(passage.queued["queue_bytes"], passage.port) for passage in data_passages(flow) if len(passage.queued)]
    if found:
        return max(found, key=lambda pair: float(pair[0].mean()))
    _, latency_ns = latencies(flow)
    capacity = capacity_bps(flow)
    if not len(latency_ns) or capacity is None:
        return np.empty(0), "unknown"
    return (latency_ns - latency_ns.min()) * (capacity / 8e9), "captures"


def compute(records: Records, flow: str) -> dict[str, Number]:
    queue, where = depths(view(records, flow))
    if not len(queue):
        return {**{f"switch_queue_{part}_bytes": NAN for part in _PARTS}, "switch_queue_where": where}
    rank = max(int(np.ceil(0.99 * len(queue))) - 1, 0)
    return {
        "switch_queue_mean_bytes": float(queue.mean()),
        "switch_queue_p99_bytes": float(np.partition(queue, rank)[rank]),
        "switch_queue_max_bytes": float(queue.max()),
        "switch_queue_where": where,
    }
