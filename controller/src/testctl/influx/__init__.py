# SPDX-License-Identifier: Apache-2.0
"""Runs in InfluxDB: a run as lines, and lines to a server of version 1, 2 or 3.

`upload` and `send` need httpx and are imported where they are used.
"""

from testctl.influx.credentials import Credentials, find_credentials
from testctl.influx.rows import summary_lines
from testctl.influx.schema import MEASUREMENTS, Measurement
from testctl.influx.series import series_lines
from testctl.influx.target import Target, parse_target

__all__ = [
    "MEASUREMENTS",
    "Credentials",
    "Measurement",
    "Target",
    "find_credentials",
    "parse_target",
    "series_lines",
    "summary_lines",
]
