# SPDX-License-Identifier: Apache-2.0
"""Finds the first packet that differs between two records of one point.

The comparison covers what a digest covers: packets, then TCP's traced events, then samples of tcp_info, in the order
in which they are stored (the same for the same input).  It ignores the timestamp option, because its offset is random.
Columns are read one by one, so that millions of packets take little memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from testctl_agent.spec.errors import PlanError

from testctl.records.digest import RANDOM
from testctl.records.parquet import cleaned, open_parquet, rows_of
from testctl.records.schema import FATES
from testctl.results import layout

FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
ECN = ("none", "ECT(1)", "ECT(0)", "CE")
TABLES = {"packet": layout.PACKETS, "tcp_event": layout.TCP_EVENTS, "tcp_info": layout.TCP_INFO}


@dataclass(frozen=True)
class FirstDifference:
    """The first difference between two records of a point.

    what     "packet", "tcp_event" or "tcp_info": the record that differs; "" if none differs or can be compared
    index    its number in the table, from 0; time_ns, where, flow: of A's record, or of B's if A's table ended
    fields   {column: (in A, in B)} of the columns that differ
    ended    "a" or "b" if that run has no such record
    note     text: why there is nothing to compare
    """

    what: str = ""
    index: int = -1
    time_ns: int | None = None
    where: str = ""
    flow: str = ""
    fields: Mapping[str, tuple[Any, Any]] | None = None
    ended: str = ""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        if self.note:
            return {"note": self.note}
        return {
            "what": self.what, "index": self.index, "time_ns": self.time_ns, "where": self.where, "flow": self.flow,
            "fields": {name: list(both) for name, both in (self.fields or {}).items()}, "ended": self.ended,
        }  # fmt: skip

    def words(self) -> str:
        if self.note:
            return self.note
        place = f"{self.what} {self.index}"
        if self.time_ns is not None:
            place += f" at {self.time_ns / 1e6:.6f} ms"
        place += f", {self.where}, {self.flow}"
        if self.ended:
            return f"{place}: the {'first' if self.ended == 'a' else 'second'} run ended before it"
        fields = (self.fields or {}).items()
        return f"{place}: " + ", ".join(_changed(name, a, b) for name, (a, b) in fields)


def _changed(name: str, a: Any, b: Any) -> str:
    """A field in A and in B; an arrow between two places would be read as the way of a packet."""
    if name == "where":
        return f"recorded at {a} in the first run, at {b} in the second"
    return f"{name} {_value(name, a)} → {_value(name, b)}"


def _value(name: str, value: Any) -> str:
    """A field as text: flags, ECN and packet action by their names."""
    if name == "flags":
        return "|".join(flag for bit, flag in enumerate(FLAGS) if value >> bit & 1) or "none"
    names = {"ecn": ECN, "fate": FATES}.get(name, ())
    return names[value] if names and 0 <= value < len(names) else str(value)


def first_difference(a: Path, b: Path) -> FirstDifference:
    """The first difference between two points' directories.  Read errors are reported in `note`, not raised."""
    try:
        for what, file in TABLES.items():
            there = [(point / file).exists() for point in (a, b)]
            if what == "packet" and not all(there):
                gone = " and ".join(str(p / file) for p, is_there in zip((a, b), there, strict=True) if not is_there)
                return FirstDifference(note=f"packets can't be compared: there is no {gone}")
            if there[0] != there[1]:
                return FirstDifference(note=f"only the {'first' if there[0] else 'second'} run has {file}")
            difference = _of_files(what, a / file, b / file) if all(there) else None
            if difference is not None:
                return difference
    except PlanError as error:
        return FirstDifference(note=f"packets can't be compared: {error}")
    return FirstDifference(note="the records are the same")


def _of_files(what: str, a: Path, b: Path) -> FirstDifference | None:
    files = [_open(path) for path in (a, b)]
    try:
        return _of_tables(what, *files)
    except (OSError, pa.ArrowException) as error:
        raise PlanError(f"{a} or {b}: can't read the records: {error}") from error
    finally:
        for file in files:
            file.close()


def _open(path: Path) -> pq.ParquetFile:
    try:
        return open_parquet(path)
    except (OSError, pa.ArrowException) as error:
        raise PlanError(f"{path}: can't read the records: {error}") from error


def _of_tables(what: str, a: pq.ParquetFile, b: pq.ParquetFile) -> FirstDifference | None:
    names = [name for name in a.schema_arrow.names if name in b.schema_arrow.names and name not in RANDOM]
    rows = rows_of(a), rows_of(b)
    first = min(rows)
    for name in names:
        first = min(first, _first_of(_column(a, name), _column(b, name), first))
    if first == min(rows) and rows[0] == rows[1]:
        return None
    ours, theirs = (
        _row(file, first, names) if first < count else None for file, count in zip((a, b), rows, strict=True)
    )
    shown = ours or theirs or {}
    place = (shown.get("time_ns"), str(shown.get("where", "")), str(shown.get("flow", "")))
    if ours is None or theirs is None:
        return FirstDifference(what, first, *place, fields={}, ended="a" if ours is None else "b")
    differ = {name: (ours[name], theirs[name]) for name in names if ours[name] != theirs[name]}
    return FirstDifference(what, first, *place, fields=differ)


def _column(file: pq.ParquetFile, name: str) -> pa.ChunkedArray:
    return file.read(columns=[name]).column(0)


def _first_of(a: pa.ChunkedArray, b: pa.ChunkedArray, most: int) -> int:
    """The first index below `most` at which two columns differ; `most` if there is none."""
    if pa.types.is_dictionary(a.type):
        names = sorted({name for column in (a, b) for chunk in column.chunks for name in chunk.dictionary.to_pylist()})
        ours, theirs = (_codes(column, names)[:most] for column in (a, b))
    else:
        ours, theirs = (np.asarray(column.to_numpy())[:most] for column in (a, b))
    unlike = ours != theirs
    at = int(unlike.argmax()) if most else 0
    return at if most and bool(unlike[at]) else most


def _codes(column: pa.ChunkedArray, names: list[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    number = {name: index for index, name in enumerate(names)}
    parts = [
        np.array([number[name] for name in chunk.dictionary.to_pylist()], dtype=np.int64)[np.asarray(chunk.indices)]
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _row(file: pq.ParquetFile, index: int, names: list[str]) -> dict[str, Any]:
    """One record, with only its row group read."""
    start = 0
    for group in range(file.num_row_groups):
        count = file.metadata.row_group(group).num_rows
        if index < start + count:
            row = file.read_row_group(group, columns=names).slice(index - start, 1)
            values: dict[str, Any] = cleaned(row).to_pylist()[0]
            return values
        start += count
    raise PlanError(f"want record {index}; got {start} records")
