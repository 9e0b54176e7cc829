# SPDX-License-Identifier: Apache-2.0
"""Grafana's dashboards over what `testctl upload` writes to InfluxDB 1.x, made from the metrics' specs."""

from testctl.grafana.registry import dashboards

__all__ = ["dashboards"]
