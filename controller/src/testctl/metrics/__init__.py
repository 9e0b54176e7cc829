# SPDX-License-Identifier: Apache-2.0
"""Metrics: pure functions from records to numbers, one file a metric."""

from testctl.metrics.core.analyse import POINT, Analysis, analyse
from testctl.metrics.core.bins import throughput_bins
from testctl.metrics.core.instruments import instruments_agree
from testctl.metrics.core.registry import Metric, metric_names, metrics
from testctl.metrics.core.series import SERIES, series
from testctl.metrics.core.spec import WIDTHS, MetricInfo, MetricSpec, Number
from testctl.metrics.recovery import RECOVERIES, recoveries_table, tcp_events
from testctl.metrics.stalls.table import CAUSES, ENDS, STALLS, stalls_table

__all__ = [
    "CAUSES",
    "ENDS",
    "POINT",
    "RECOVERIES",
    "SERIES",
    "STALLS",
    "WIDTHS",
    "Analysis",
    "Metric",
    "MetricInfo",
    "MetricSpec",
    "Number",
    "analyse",
    "instruments_agree",
    "metric_names",
    "metrics",
    "recoveries_table",
    "series",
    "stalls_table",
    "tcp_events",
    "throughput_bins",
]
