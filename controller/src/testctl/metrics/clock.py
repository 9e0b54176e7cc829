# SPDX-License-Identifier: Apache-2.0
"""How far the clocks of a flow's two hosts were apart, and how surely: what one-way latency rests on.

NaN where the hosts have one clock (the lab, namespaces of one machine).
"""

from __future__ import annotations

from testctl.metrics.core.clocks import apart
from testctl.metrics.core.spec import NAN, PLAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="clock",
    help="the receiver's clock against the sender's",
    needs=PLAN,
    values=(
        MetricInfo("clock_offset_ns", "ns", "receiver's clock less the sender's, taken off latencies; NaN: one clock"),
        MetricInfo(
            "clock_error_ns", "ns", "most that clock_offset_ns can be wrong; a latency below it is NaN", "lower"
        ),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    clocks = apart(view(records, flow))
    if clocks is None or clocks.error_ns == float("inf"):
        return {"clock_offset_ns": NAN, "clock_error_ns": NAN}
    return {"clock_offset_ns": clocks.offset_ns, "clock_error_ns": clocks.error_ns}
