# SPDX-License-Identifier: Apache-2.0
"""Queue: what TCP had handed down and had not left the sender yet (HTB's queue, mostly)."""

from __future__ import annotations

from testctl.metrics.core.queues import own_queue
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="queue",
    needs="sender and tcp_info",
    help="the flow's payload in the sender's own queues, by tcp_info and the capture",
    values=(
        MetricInfo("own_queue_mean_bytes", "B", "mean over tcp_info samples; NaN without any", "lower"),
        MetricInfo("own_queue_max_bytes", "B", "largest of the tcp_info samples; NaN without any", "lower"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    _, queued = own_queue(view(records, flow))
    if not len(queued):
        return {"own_queue_mean_bytes": NAN, "own_queue_max_bytes": NAN}
    return {"own_queue_mean_bytes": float(queued.mean()), "own_queue_max_bytes": int(queued.max())}
