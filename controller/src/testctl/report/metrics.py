# SPDX-License-Identifier: Apache-2.0
"""The few metrics of a point that tables show, in one number for all its flows."""

from __future__ import annotations

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

_SUMMED = frozenset({"throughput_bps", "stall_count", "retransmission_timeouts", "retransmissions", "packets_lost"})


def one_number(point: RunPoint, metric: str) -> float | None:
    """A metric of a point in one number: the sum over flows of what can be summed, else the greatest of them."""
    values = [values.get(metric) for values in point.metrics.values()]
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if not numbers:
        return None
    return sum(numbers) if metric in _SUMMED else max(numbers)


def meaning(metric: str) -> str:
    """What a heading stands for."""
    return f"{metric}, {'sum of' if metric in _SUMMED else 'greatest of'} all flows"
