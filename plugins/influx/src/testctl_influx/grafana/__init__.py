# SPDX-License-Identifier: Apache-2.0
"""Grafana's dashboards for the data of `testctl upload` in InfluxDB 1.x, generated from the metrics' specs."""

from testctl_influx.grafana.registry import dashboards

__all__ = ["dashboards"]
