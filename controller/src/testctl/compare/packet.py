# SPDX-License-Identifier: Apache-2.0
"""Finds the first packet that differs between two records of one point.

The comparison covers what a digest covers: packets, then TCP's traced events, samples of tcp_info and requests, in the
order in which they are stored (the same for the same input).  It ignores the timestamp option, because its offset is
random.  Columns of files are read one by one, so that millions of packets take little memory.
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
TABLES = {
    "packet": layout.PACKETS,
    "tcp_event": layout.TCP_EVENTS,
    "tcp_info": layout.TCP_INFO,
    "request": layout.REQUESTS,
}


@dataclass(frozen=True)
class FirstDifference:
    """The first difference between two records of a point.

    what     the record that differs, of TABLES; "" if none differs or can be compared
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
        place += "".join(f", {name}" for name in (self.where, self.flow) if name)
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
        return difference_of(what, *map(_Columns, files))
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


class _Columns:
    """A file as a table: a column, or the row group of a row, is read when it is needed."""

    def __init__(self, file: pq.ParquetFile) -> None:
        self._file, self.column_names, self.num_rows = file, file.schema_arrow.names, rows_of(file)

    def column(self, name: str) -> pa.ChunkedArray:
        return self._file.read(columns=[name]).column(0)

    def slice(self, offset: int, length: int) -> pa.Table:
        for group in range(self._file.num_row_groups):
            count = self._file.metadata.row_group(group).num_rows
            if offset < count:
                return self._file.read_row_group(group).slice(offset, length)
            offset -= count
        raise PlanError(f"want a record {offset} further; got {self.num_rows} records")


def difference_of(what: str, a: pa.Table | _Columns, b: pa.Table | _Columns) -> FirstDifference | None:
    """The first difference between two tables; None where there is none.  what: as of FirstDifference."""
    names = [name for name in a.column_names if name in b.column_names and name not in RANDOM]
    rows = a.num_rows, b.num_rows
    first = min(rows)
    for name in names:
        first = min(first, _first_of(a.column(name), b.column(name), first))
    if first == min(rows) and rows[0] == rows[1]:
        return None
    ours, theirs = (
        cleaned(table.slice(first, 1)).select(names).to_pylist()[0] if first < count else None
        for table, count in zip((a, b), rows, strict=True)
    )
    shown = ours or theirs or {}
    place = (shown.get("time_ns"), str(shown.get("where", "")), str(shown.get("flow", "")))
    if ours is None or theirs is None:
        return FirstDifference(what, first, *place, fields={}, ended="a" if ours is None else "b")
    differ = {name: (ours[name], theirs[name]) for name in names if ours[name] != theirs[name]}
    return FirstDifference(what, first, *place, fields=differ)


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
