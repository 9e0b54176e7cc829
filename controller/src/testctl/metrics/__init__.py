# SPDX-License-Identifier: Apache-2.0
"""Metrics: pure functions from records to numbers, one file a metric."""

from testctl.metrics._analyse import Analysis, analyse
from testctl.metrics._instruments import instruments_agree
from testctl.metrics.core.completions import CLASSES, TAILS, WHICH, Completions, completions
from testctl.metrics.core.registry import Metric, brought, key_of_others, metric_names, metrics
from testctl.metrics.core.spec import INSTRUMENTS, PLAN, WIDTHS, MetricInfo, MetricSpec, Number
from testctl.metrics.recovery import RECOVERIES, recoveries_table, tcp_events
from testctl.metrics.stalls.table import CAUSES, ENDS, STALLS, stalls_table

__all__ = [
    "CAUSES",
    "CLASSES",
    "ENDS",
    "INSTRUMENTS",
    "PLAN",
    "RECOVERIES",
    "STALLS",
    "TAILS",
    "WHICH",
    "WIDTHS",
    "Analysis",
    "Completions",
    "Metric",
    "MetricInfo",
    "MetricSpec",
    "Number",
    "analyse",
    "brought",
    "completions",
    "instruments_agree",
    "key_of_others",
    "metric_names",
    "metrics",
    "recoveries_table",
    "stalls_table",
    "tcp_events",
]
