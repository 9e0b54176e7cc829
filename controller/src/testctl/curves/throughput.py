# SPDX-License-Identifier: Apache-2.0
"""Throughput: the data direction at the receiver."""

from __future__ import annotations

import pyarrow as pa

from testctl.curves.core.spec import CurveSpec
from testctl.metrics.core.view import FlowView

SPEC = CurveSpec(
    name="throughput",
    value="wire_bytes",
    binned="sum",
    title="Throughput",
    of="all flows, bytes on the wire",
    kind="rate",
    shape="rate",
    zero=True,
    stalls=True,
    place=10,
)


def compute(flow: FlowView) -> pa.Table:
    """time_ns and wire_bytes of each packet; of a bin their sum, and bps."""
    return pa.table({name: flow.at_sink[name] for name in ("time_ns", "wire_bytes")})
