# SPDX-License-Identifier: Apache-2.0
"""Records: one schema for packets, tcp_info samples and counters, whatever the source."""

from testctl.records.digest import digest_of
from testctl.records.errors import RecordsError
from testctl.records.parquet import read_parquet
from testctl.records.schema import PACKETS, REQUESTS, TCP_EVENTS, TCP_INFO
from testctl.records.store import Records, load_raw, make_records

__all__ = [
    "PACKETS",
    "REQUESTS",
    "TCP_EVENTS",
    "TCP_INFO",
    "Records",
    "RecordsError",
    "digest_of",
    "load_raw",
    "make_records",
    "read_parquet",
]
