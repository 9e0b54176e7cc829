# SPDX-License-Identifier: Apache-2.0
"""The few metrics of a point that tables show, in one number for all its flows."""

from __future__ import annotations

from testctl.metrics import POINT
from testctl.results import RunPoint

KEY_METRICS = (
    ("throughput_bps", "throughput"),
    ("saturation", "saturation"),
    ("stability_cv_10ms", "cv 10 ms"),
    ("stall_count", "stalls"),
    ("stall_longest_ms", "longest stall"),
    ("retransmission_timeouts", "timeouts"),
    ("packets_lost", "lost"),
    ("retransmissions", "retrans."),
    ("latency_p99_us", "latency p99"),
)
"""Metrics of the tables of points: those of them that the run has, with a short heading."""

_SUMMED = frozenset({"stall_count", "retransmission_timeouts", "retransmissions", "packets_lost"})
_TOGETHER = {"throughput_bps": "total_throughput_bps", "saturation": "total_saturation"}
"""What of several flows together is a metric of the point: bytes of all over the time of all."""


def one_number(point: RunPoint, metric: str) -> float | None:
    """A metric of a point in one number: of all flows together, their sum, or the greatest of them.

    None when it is not known of every flow.
    """
    of_flows = [values for name, values in point.metrics.items() if name != POINT]
    wide = point.metrics.get(POINT, {})
    together = _TOGETHER.get(metric, metric)
    if together in wide and len(of_flows) != 1:
        values = [wide[together]]
    else:
        values = [values.get(metric) for values in of_flows]
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if not numbers or len(numbers) < len(values):
        return None
    return sum(numbers) if metric in _SUMMED else max(numbers)


def meaning(metric: str) -> str:
    """What a heading stands for."""
    if metric in _TOGETHER:
        return f"{metric}; of several flows {_TOGETHER[metric]}, all bytes over all time"
    return f"{metric}, {'sum of' if metric in _SUMMED else 'greatest of'} all flows"
