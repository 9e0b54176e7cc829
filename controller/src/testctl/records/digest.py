# SPDX-License-Identifier: Apache-2.0
"""The digest of records: the same for two runs of a point that went the same way.

It covers the packets, the tcp_info samples and, where there are any, TCP's traced events and the applications'
requests.  It leaves out random numbers of a kernel (the offset of TCP timestamps; ports, ISNs and MAC addresses are not
in records), and counters, which also count other traffic.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

from testctl.records.schema import (
    ACCURATE_ECN,
    PACKETS,
    REQUESTS,
    SENDER_COLUMNS,
    TCP_EVENTS,
    TCP_INFO,
    codes_of,
    numbers_of,
    others,
)

RANDOM = frozenset({"tsval", "tsecr"})
"""Columns that a digest does not cover.  It covers the columns of Accurate ECN where a packet has any value of it."""


_UNCOVERED = RANDOM | set(SENDER_COLUMNS)
"""Nor does it cover the rates, limits and state of congestion control in TCP's events, so that a run still has the
digest that it had before they were recorded."""


def digest_of(
    packets: pa.Table, tcp_info: pa.Table, tcp_events: pa.Table | None = None, requests: pa.Table | None = None
) -> str:
    """sha256 (hex) of the columns, in the schema's order and types, little-endian."""
    total = hashlib.sha256()
    tables = [("packets", packets, PACKETS), ("tcp_info", tcp_info, TCP_INFO)]
    if tcp_events is not None:
        tables.append(("tcp_events", tcp_events, TCP_EVENTS))
    if requests is not None:
        tables.append(("requests", requests, REQUESTS))
    for label, table, schema in tables:
        total.update(f"{label} {table.num_rows}\n".encode())
        for field in schema:
            usual, every = ACCURATE_ECN.get(field.name), np.arange(table.num_rows)
            if field.name in _UNCOVERED:
                continue
            if usual is not None and not len(others(table.column(field.name), every, usual)[0]):
                continue
            total.update(f"{field.name} {field.type}\n".encode())
            if pa.types.is_dictionary(field.type):
                codes, names = codes_of(table, field.name)
                order = np.argsort(np.array(names, object), kind="stable")
                rank = np.empty(len(names), np.int16)
                rank[order] = np.arange(len(names), dtype=np.int16)
                total.update("\0".join(sorted(names)).encode() + b"\n")
                column = rank[codes] if len(codes) else codes
            else:
                column = numbers_of(table, field.name)
            total.update(np.ascontiguousarray(column.astype(column.dtype.newbyteorder("<"), copy=False)).data)
    return total.hexdigest()
