# SPDX-License-Identifier: Apache-2.0
"""Stalls of a flow in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.stalls.classify import classify
from testctl.metrics.stalls.table import CAUSES, Stall, flow_stalls
from testctl.records import Records

_WHY = tuple(CAUSES.items())
_BOTH = "sender and receiver"

SPEC = MetricSpec(
    name="stalls",
    help="silences of the data at the sender longer than four round trips and 1 ms",
    needs="sender",
    values=(
        MetricInfo(
            "stall_count",
            "",
            "stalls: times longer than four round trips (and 1 ms) in which a connection sent no data",
            "lower",
        ),
        MetricInfo("stall_time_s", "s", "time in stalls", "lower"),
        MetricInfo("stall_longest_ms", "ms", "longest stall; 0 without any", "lower"),
        *(MetricInfo(f"stall_{cause}_count", "", f"stalls where {why}", "lower", needs=_BOTH) for cause, why in _WHY),
        *(
            MetricInfo(f"stall_{cause}_longest_ms", "ms", f"longest where {why}", "lower", needs=_BOTH)
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
    return values | dict.fromkeys(_not_known(stalls), NAN)


def _not_known(stalls: Sequence[Stall]) -> Iterator[str]:
    """The values of causes between which only an instrument that there is not could decide."""
    for stall in stalls:
        causes = {classify(stall.evidence, way)[0] for way in ("tlp", "new_data")}
        for cause in causes if len(causes) > 1 else ():
            yield from (f"stall_{cause}_count", f"stall_{cause}_longest_ms")
