# SPDX-License-Identifier: Apache-2.0
"""Reads the samples of struct tcp_info that `tgen sample` writes.

File: "TGI1", u32 S; then records of u64 time_ns (CLOCK_REALTIME), u16 local port, u16 remote
port, u32 state, u32 cookie, u32 n (bytes the kernel gave, at most S) and S bytes, little-endian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.records.errors import RecordsError
from testctl.records.flow_map import FlowMap
from testctl.records.schema import TCP_INFO, TCP_INFO_BITS, TCP_INFO_FIELDS, Array, names_column

_MAGIC = b"TGI1"
_HEADER = 8
_LARGEST = 4096
_MAX = np.uint64(2**63 - 1)


def read_tcp_info(
    files: Mapping[str, Sequence[Path]], point: PointSpec, outcome: Outcome
) -> tuple[pa.Table, list[str]]:
    """The tcp_info table (schema TCP_INFO, sorted by time) and notes.

    files: entity -> its files.  Sockets that belong to no flow (listening ones too) are left out.
    A value beyond int64 (no pacing limit) becomes the largest int64.
    """
    flows = FlowMap.of(point, outcome)
    t0_ns = outcome.t0_ns
    notes: list[str] = []
    wheres = sorted(files)
    parts: list[dict[str, Array]] = []
    samples = [(number, path) for number, where in enumerate(wheres) for path in files[where]]
    for number, path in samples:
        records, cut = _records(path)
        if cut:
            notes.append(f"{wheres[number]}: tcp_info ends within a record, which is left out")
        flow, conn = flows.of_ports(records["local"], records["remote"])
        known = flow >= 0
        records = records[known]
        columns = _fields(records["info"], records["size"])
        columns |= {"time_ns": records["time_ns"].astype(np.int64) - t0_ns, "flow": flow[known], "conn": conn[known]}
        parts.append(columns | {"where": np.full(len(records), number, np.int16)})
    if not parts:
        return TCP_INFO.empty_table(), notes
    joined = {name: np.concatenate([part[name] for part in parts]) for name in TCP_INFO.names}
    order = np.lexsort((joined["conn"], joined["flow"], joined["where"], joined["time_ns"]))
    arrays = {name: column[order] for name, column in joined.items()}
    named = {"where": names_column(arrays["where"], wheres), "flow": names_column(arrays["flow"], flows.names)}
    return pa.table([named.get(name, pa.array(arrays[name])) for name in TCP_INFO.names], schema=TCP_INFO), notes


def _records(path: Path) -> tuple[Array, bool]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordsError(path, f"can't be read: {error.strerror}") from error
    if len(data) < _HEADER or data[:4] != _MAGIC:
        raise RecordsError(path, f"want a file that begins {_MAGIC!r}; got {data[:4]!r}", 0)
    size = int.from_bytes(data[4:8], "little")
    if not 1 <= size <= _LARGEST:
        raise RecordsError(path, f"want a tcp_info of 1 to {_LARGEST} bytes; got {size}", 4)
    kind = np.dtype(
        [
            ("time_ns", "<u8"),
            ("local", "<u2"),
            ("remote", "<u2"),
            ("state", "<u4"),
            ("cookie", "<u4"),
            ("size", "<u4"),
            ("info", "u1", (size,)),
        ]
    )
    count, left = divmod(len(data) - _HEADER, kind.itemsize)
    records = np.frombuffer(data, kind, count, _HEADER)
    bad = np.flatnonzero(records["size"] > size)
    if len(bad):
        at = _HEADER + int(bad[0]) * kind.itemsize
        raise RecordsError(path, f"want at most {size} bytes of tcp_info; got {records['size'][bad[0]]}", at)
    return records, left > 0


def _fields(info: Array, size: Array) -> dict[str, Array]:
    stored = info.shape[1]
    columns: dict[str, Array] = {}
    for name, at, width in TCP_INFO_FIELDS:
        column = np.full(len(info), -1, np.int64)
        if at + width <= stored and len(info):
            there = size >= at + width
            wire = np.ascontiguousarray(info[there, at : at + width]).view(f"<u{width}")[:, 0]
            column[there] = np.minimum(wire.astype(np.uint64), _MAX).astype(np.int64)
        columns[name] = column
    for name, at, shift, mask in TCP_INFO_BITS:
        column = np.full(len(info), -1, np.int64)
        if at < stored:
            there = size > at
            column[there] = (info[there, at] >> shift) & mask
        columns[name] = column
    return columns
