# SPDX-License-Identifier: Apache-2.0
"""One-way latency of every data packet, at its departure."""

from __future__ import annotations

import pyarrow as pa

from testctl.curves.core.spec import CurveSpec
from testctl.metrics.core.latencies import certain_latencies
from testctl.metrics.core.view import FlowView

SPEC = CurveSpec(
    name="latency",
    value="latency_ns",
    binned="mean",
    title="Latency, one way",
    of="each data packet",
    kind="time",
    shape="line with gaps",
    zero=True,
    there=lambda flow: bool(len(flow.out) and len(flow.into)),
    place=50,
)


def compute(flow: FlowView) -> pa.Table:
    """time_ns (of departure), latency_ns; of a bin latency_us and latency_us_max."""
    left, latency_ns = certain_latencies(flow)
    return pa.table({"time_ns": left, "latency_ns": latency_ns})
