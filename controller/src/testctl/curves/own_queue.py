# SPDX-License-Identifier: Apache-2.0
"""Bytes that TCP sent but that had not left the host, by tcp_info and the capture."""

from __future__ import annotations

import pyarrow as pa

from testctl.curves.core.spec import CurveSpec
from testctl.metrics.core.queues import own_queue
from testctl.metrics.core.view import FlowView

SPEC = CurveSpec(
    name="own_queue",
    value="bytes",
    binned="most",
    title="Queue of the sender",
    of="handed down by TCP, not sent yet",
    kind="size",
    there=lambda flow: bool(flow.info) and len(flow.out) > 0,
    zero=True,
    place=70,
)


def compute(flow: FlowView) -> pa.Table:
    """time_ns, bytes at each sample of tcp_info; the largest of each bin."""
    time_ns, amount = own_queue(flow)
    return pa.table({"time_ns": time_ns, "bytes": amount})
