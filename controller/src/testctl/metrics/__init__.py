# SPDX-License-Identifier: Apache-2.0
"""Metrics: pure functions from records to numbers, one file a metric."""

from testctl.metrics._analyse import POINT, Analysis, analyse
from testctl.metrics._instruments import instruments_agree
from testctl.metrics.core.registry import Metric, brought, key_of_others, metric_names, metrics
from testctl.metrics.core.spec import INSTRUMENTS, PLAN, WIDTHS, MetricInfo, MetricSpec, Number
from testctl.metrics.recovery import RECOVERIES, recoveries_table, tcp_events
from testctl.metrics.stalls.table import CAUSES, ENDS, STALLS, stalls_table

__all__ = [
    "CAUSES",
    "ENDS",
    "INSTRUMENTS",
    "PLAN",
    "POINT",
    "RECOVERIES",
    "STALLS",
    "WIDTHS",
    "Analysis",
    "Metric",
    "MetricInfo",
    "MetricSpec",
    "Number",
    "analyse",
    "brought",
    "instruments_agree",
    "key_of_others",
    "metric_names",
    "metrics",
    "recoveries_table",
    "stalls_table",
    "tcp_events",
]
