# SPDX-License-Identifier: Apache-2.0
"""Jain's index: 1 when all flows get the same, 1/n when one gets all.

Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
"""

from __future__ import annotations

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.metrics.throughput import compute as throughput
from testctl.records import Records

SPEC = MetricSpec(
    name="jain",
    help="fairness between the flows of a point",
    needs="receiver",
    values=(
        MetricInfo(
            "jain",
            "",
            "Jain's index of the flows' throughput_bps, 0 for one of which no data arrived; NaN when another has none",
            "higher",
        ),
    ),
    scope="point",
)


def compute(records: Records, flow: str = "*") -> dict[str, Number]:
    rates = [
        float(throughput(records, name)["throughput_bps"]) if len(view(records, name).arrived) else 0.0
        for name in records.plans_flows
    ]
    square = sum(rate**2 for rate in rates)
    return {"jain": sum(rates) ** 2 / (len(rates) * square) if square else NAN}
