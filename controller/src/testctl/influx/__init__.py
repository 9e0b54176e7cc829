# SPDX-License-Identifier: Apache-2.0
"""Runs in InfluxDB: a run as lines, and lines to a server of version 1, 2 or 3.

`upload` and `send` need httpx and are imported where they are used.
"""

from testctl.influx.credentials import Credentials, find_credentials
from testctl.influx.measurements import MEASUREMENTS, Measurement
from testctl.influx.rows import summary_lines
from testctl.influx.series import series_lines
from testctl.influx.target import Destination, parse_target

__all__ = [
    "MEASUREMENTS",
    "Credentials",
    "Destination",
    "Measurement",
    "find_credentials",
    "parse_target",
    "series_lines",
    "summary_lines",
]
