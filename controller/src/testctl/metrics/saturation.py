# SPDX-License-Identifier: Apache-2.0
"""Saturation: achieved throughput over the capacity of the path (the paper, section 5.2)."""

from __future__ import annotations

from testctl.metrics.core.capacity import capacity_bps
from testctl.metrics.core.spec import NAN, PLAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.metrics.throughput import compute as throughput
from testctl.records import Records

SPEC = MetricSpec(
    name="saturation",
    help="throughput over the lowest rate set on the flow's path",
    needs="receiver",
    values=(
        MetricInfo("saturation", "", "throughput_bps / capacity_bps; NaN when no rate is set", "higher"),
        MetricInfo(
            "capacity_bps", "bit/s", "lowest of the port rates and the sender's htb_rate on the path", needs=PLAN
        ),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    capacity = capacity_bps(view(records, flow))
    if capacity is None:
        return {"saturation": NAN, "capacity_bps": NAN}
    return {"saturation": float(throughput(records, flow)["throughput_bps"]) / capacity, "capacity_bps": capacity}
