# SPDX-License-Identifier: Apache-2.0
"""A point's records for its figures: a column of packets is read when a curve first asks for it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from testctl_agent.spec.errors import PlanError

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.core.temporal import Answers
from testctl.curves import Lane, figures, lanes, shown_ns
from testctl.records import PACKETS, REQUESTS, TCP_EVENTS, TCP_INFO, Records, read_parquet
from testctl.records.parquet import rows_of
from testctl.records.schema import Array, Ints
from testctl.report.stalls import Stall, read_stalls
from testctl.results import layout, shapes
from testctl.results.reader import read_json
from testctl.serve import listing
from testctl.system.memory import spare_bytes

MAX_STALLS = 1000
"""Stalls of a point that are listed, the longest ones."""

MAX_PACKETS, PACKET_BYTES = 50_000_000, 100
"""Packets of a point that are drawn, and about what one takes: what is drawn is held in memory, at most half of it."""


IN_PARTS = 4_000_000
"""Packets of a point above which a column is read in parts, and dropped when its curve is made."""


_TOGETHER = (
    "time_ns", "flow", "where", "conn", "direction", "out", "length", "wire_bytes", "flags", "ordinal", "seq", "ack",
    "segs", "tsval", "retrans",
)  # fmt: skip
"""Columns that the figures of every point read: at once they are decoded on all processors."""


class Columns:
    """A Parquet file as the table of packets of Records: columns alone, read when they are asked for."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file, self.schema = pq.ParquetFile(path), schema
        self._read: dict[str, pa.ChunkedArray] = {}
        groups = self._file.metadata
        self.num_rows = rows_of(self._file)
        self.in_parts = self.num_rows > IN_PARTS
        self._starts = np.cumsum([0, *(groups.row_group(n).num_rows for n in range(groups.num_row_groups))])
        most = min(MAX_PACKETS, 2 * spare_bytes() // PACKET_BYTES)
        if self.num_rows > most:
            raise PlanError(f"{path.name}: want at most {most} packets to draw; got {self.num_rows}")

    def column(self, name: str) -> pa.ChunkedArray:
        if name not in _TOGETHER or self.in_parts:
            return self._typed(self._file.read(columns=[name]), name)
        if name not in self._read:
            table = self._file.read(list(_TOGETHER))
            self._read = {one: self._typed(table, one) for one in table.schema.names}
        return self._read.pop(name)

    def values(self, name: str, index: Ints) -> Array:
        """Numbers of a column at these rows, ascending; one row group at a time is in memory."""
        cuts = np.searchsorted(index, self._starts)
        found = [self._numbers(n, name, index[low:high]) for n, (low, high) in enumerate(pairwise(cuts)) if high > low]
        return np.concatenate(found) if found else np.empty(0, self.schema.field(name).type.to_pandas_dtype())

    def _numbers(self, group: int, name: str, index: Ints) -> Array:
        column = self._typed(self._file.read_row_group(group, columns=[name]), name)
        numbers: Array = np.asarray(column.to_numpy())
        return np.asarray(numbers[index - self._starts[group]])

    def _typed(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        return table[name].cast(self.schema.field(name).type)


@dataclass(frozen=True)
class Source:
    """A point's files, by name, and its records; None without packets and requests.

    `lock` is held while curves are computed.
    """

    asked: Mapping[str, Any]
    files: Mapping[str, Path]
    records: Records | None
    lock: threading.Lock = field(default_factory=threading.Lock, compare=False)

    @property
    def count(self) -> int:
        """How many packets were recorded."""
        return 0 if self.records is None else int(self.records.packets.num_rows)

    @property
    def requests(self) -> int:
        """How many requests were recorded."""
        table = None if self.records is None else self.records.requests
        return 0 if table is None else int(table.num_rows)

    @property
    def duration_ns(self) -> int:
        """What the figures show at first."""
        if self.records is None or not self.count:
            return 0
        return shown_ns(self.asked, int(self.records.values("time_ns", np.array([self.count - 1]))[0]))

    @cached_property
    def _stalls(self) -> pa.Table | None:
        return read_parquet(self.files[layout.STALLS]) if layout.STALLS in self.files else None

    @cached_property
    def stalls(self) -> list[Stall]:
        """The longest, in order of time; rows that are not shown are not converted."""
        return read_stalls(self._stalls, None, MAX_STALLS)

    @cached_property
    def answers(self) -> Answers:
        """What came of the plan's conditions over the trace.  Raises PlanError."""
        return read_json(self.files[layout.ANSWERS], shapes.ANSWERS) if layout.ANSWERS in self.files else {}

    @property
    def stalls_in_all(self) -> int:
        return 0 if self._stalls is None else int(self._stalls.num_rows)

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """The connections, in the plan's order; of many those with most bytes come first."""
        return lanes(self.records) if self.records and self.count else ()

    @property
    def figures(self) -> tuple[str, ...]:
        return figures(self.records) if self.records and self.count else ()


def read_source(path: Path) -> Source:
    """A point's records.  Raises PlanError and pyarrow's errors when they can't be read."""
    asked = listing.own_json(path, layout.POINT)
    names = (
        layout.PACKETS,
        layout.TCP_INFO,
        layout.TCP_EVENTS,
        layout.REQUESTS,
        layout.STALLS,
        layout.OUTCOME,
        layout.ANSWERS,
    )
    files = {name: found for name in names if (found := listing.own_file(path, name)) is not None}
    if layout.PACKETS not in files and layout.REQUESTS not in files:
        return Source(asked, files, None)
    outcome = listing.own_json(path, layout.OUTCOME) if layout.OUTCOME in files else {}
    tables = {
        name: read_parquet(files[name], schema.names, schema).cast(schema).combine_chunks()
        for name, schema in ((layout.TCP_INFO, TCP_INFO), (layout.TCP_EVENTS, TCP_EVENTS), (layout.REQUESTS, REQUESTS))
        if name in files
    }
    sampled = tables[layout.TCP_INFO] if layout.TCP_INFO in tables else TCP_INFO.empty_table()
    packets = Columns(files[layout.PACKETS], PACKETS) if layout.PACKETS in files else PACKETS.empty_table()
    try:
        point, became = PointSpec.from_json(asked), Outcome.from_json(outcome)
    except ValueError as error:
        raise PlanError(f"{path}: {error}") from error
    traced, asked_for = tables.get(layout.TCP_EVENTS), tables.get(layout.REQUESTS)
    records = Records(packets, sampled, {}, became, point, tcp_events=traced, requests=asked_for)
    return Source(asked, files, records)
