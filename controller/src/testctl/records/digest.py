# SPDX-License-Identifier: Apache-2.0
"""The digest of records: the same for two runs of a point that went the same way.

It covers the packets, the tcp_info samples and, where there are any, TCP's traced events and the
applications' requests.  Left out is
what a kernel draws at random (the offset of TCP timestamps; ports, ISNs and MAC addresses are not in
records), and counters, which also count what is not the point's traffic.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

from testctl.records.schema import ACCURATE_ECN, PACKETS, REQUESTS, TCP_EVENTS, TCP_INFO, codes_of, numbers_of, others

RANDOM = frozenset({"tsval", "tsecr"})
"""Columns that a digest does not cover.  Those of Accurate ECN it covers where a packet has something of it."""


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
            if field.name in RANDOM or _nothing(table, field.name):
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


def _nothing(table: pa.Table, name: str) -> bool:
    """Whether it is a column of Accurate ECN of which no packet has anything."""
    if name not in ACCURATE_ECN:
        return False
    return not len(others(table.column(name), np.arange(table.num_rows), ACCURATE_ECN[name])[0])
