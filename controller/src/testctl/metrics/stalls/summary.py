# SPDX-License-Identifier: Apache-2.0
"""Stalls of a flow in numbers."""

from __future__ import annotations

from testctl.metrics.core.spec import MetricInfo, MetricSpec, Number
from testctl.metrics.stalls.table import CAUSES, flow_stalls
from testctl.records import Records

_WHY = tuple(CAUSES.items())

SPEC = MetricSpec(
    name="stalls",
    help="silences of the data at the sender longer than four round trips and 1 ms",
    values=(
        MetricInfo("stall_count", "", "number of stalls, whatever their cause", "lower"),
        MetricInfo("stall_time_s", "s", "time in stalls", "lower"),
        MetricInfo("stall_longest_ms", "ms", "longest stall; 0 without any", "lower"),
        *(MetricInfo(f"stall_{cause}_count", "", f"stalls where {why}", "lower") for cause, why in _WHY),
        *(
            MetricInfo(f"stall_{cause}_longest_ms", "ms", f"longest where {why}", "lower")
            for cause, why in CAUSES.items()
        ),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    stalls = flow_stalls(records, flow)
    lengths = [stall.evidence.length_ns for stall in stalls]
    values: dict[str, Number] = {
        "stall_count": len(stalls),
        "stall_time_s": sum(lengths) / 1e9,
        "stall_longest_ms": max(lengths, default=0) / 1e6,
    }
    for cause in CAUSES:
        of_cause = [stall.evidence.length_ns for stall in stalls if stall.cause == cause]
        values[f"stall_{cause}_count"] = len(of_cause)
        values[f"stall_{cause}_longest_ms"] = max(of_cause, default=0) / 1e6
    return values
