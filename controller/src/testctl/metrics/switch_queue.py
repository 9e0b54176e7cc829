# SPDX-License-Identifier: Apache-2.0
"""Switch queue: how many bytes waited at the switch port by which a flow's data packets leave, when each came.

By telemetry, at the port of the flow's way where it is longest on average.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.passages import data_passages
from testctl.metrics.core.percentiles import rank_of
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, view
from testctl.records import Records
from testctl.records.schema import Array

_PARTS = {"mean": "mean over data packets", "p99": "99th percentile of data packets", "max": "largest"}

SPEC = MetricSpec(
    name="switch_queue",
    help="bytes waiting at the switch port, as the flow's data found them",
    needs="telemetry",
    values=(
        *(MetricInfo(f"switch_queue_{part}_bytes", "B", text, "lower") for part, text in _PARTS.items()),
        MetricInfo("switch_queue_where", "", 'the port, such as "switch:receiver"', text=True),
    ),
)


def depths(flow: FlowView) -> tuple[Array, str]:
    """(bytes in the queue when each data packet came, where); ("", none) when no packet came to a queue."""
    by_port = [(passage.queued["queue_bytes"], passage.port) for passage in data_passages(flow) if len(passage.queued)]
    return max(by_port, key=lambda pair: float(pair[0].mean())) if by_port else (np.empty(0), "")


def compute(records: Records, flow: str) -> dict[str, Number]:
    queue, where = depths(view(records, flow))
    if not len(queue):
        return {info.name: NAN for info in SPEC.values}
    rank = rank_of(0.99, len(queue))
    return {
        "switch_queue_mean_bytes": float(queue.mean()),
        "switch_queue_p99_bytes": float(np.partition(queue, rank)[rank]),
        "switch_queue_max_bytes": float(queue.max()),
        "switch_queue_where": where,
    }
