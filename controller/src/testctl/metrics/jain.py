# SPDX-License-Identifier: Apache-2.0
"""Jain's fairness index of the flows' throughput: (Σx)² / (n Σx²), 1 when all are equal.

Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
"""

from __future__ import annotations

import math

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.throughput import compute as throughput
from testctl.records import Records

SPEC = MetricSpec(
    name="jain",
    help="fairness between the flows of a point",
    values=(
        MetricInfo("jain", "", "Jain's index of the flows' throughput", "higher"),
        MetricInfo("total_throughput_bps", "bit/s", "sum of the flows' throughput", "higher"),
    ),
    scope="point",
)


def compute(records: Records, flow: str = "*") -> dict[str, Number]:
    rates = [float(throughput(records, name)["throughput_bps"]) for name in records.flows]
    rates = [rate for rate in rates if not math.isnan(rate)]
    square = sum(rate**2 for rate in rates)
    return {
        "jain": sum(rates) ** 2 / (len(rates) * square) if square else NAN,
        "total_throughput_bps": sum(rates),
    }
