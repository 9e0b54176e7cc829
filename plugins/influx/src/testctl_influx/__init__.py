# SPDX-License-Identifier: Apache-2.0
"""Runs in InfluxDB: a run as lines, lines to a server of version 1, 2 or 3, and Grafana's dashboards over them.

The modules are imported where they are used: `testctl upload --help` needs none but `command`.
"""
