# SPDX-License-Identifier: Apache-2.0
"""Records of a point: made from raw output, saved as Parquet, loaded again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from testctl_agent.spec.untrusted import loads

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.records.counters import read_counters
from testctl.records.digest import digest_of
from testctl.records.errors import RecordsError
from testctl.records.files import find_file, read_object
from testctl.records.packets import read_packets
from testctl.records.parquet import read_parquet
from testctl.records.schema import PACKETS, TCP_EVENTS, TCP_INFO, Array, Ints, codes_of, names_column, numbers_of
from testctl.records.tcp_events import read_tcp_events
from testctl.records.tcp_info import read_tcp_info
from testctl.records.telemetry import read_telemetry
from testctl.records.texts import cleaned

_TABLES = (("packets", PACKETS), ("tcp_info", TCP_INFO))
_TRACED = "tcp_events"
_NAMES = "testctl.names"
"""In the metadata of an empty table's file: {column: names}."""


@dataclass
class Records:
    """All that metrics may read of a point.

    packets, tcp_info: tables of schema PACKETS and TCP_INFO; tcp_events: what kernels traced, schema TCP_EVENTS
    (None: nobody traced); counters: {entity: differences};
    outcome, point: what was asked and what became of it; notes: what a reader should know (truncated captures, …).
    `memo` keeps what was computed from them; nothing may be changed after the first metric.
    """

    packets: pa.Table
    tcp_info: pa.Table
    counters: dict[str, Any]
    outcome: Outcome
    point: PointSpec
    notes: list[str] = field(default_factory=list)
    tcp_events: pa.Table | None = None
    memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def column(self, name: str) -> Array:
        """A numeric column of packets, converted once."""
        found: Array = self._memo(("packets", name), lambda: numbers_of(self.packets, name))
        return found

    def values(self, name: str, index: Ints) -> Array:
        """A numeric column of packets at ascending rows; of a large file not the whole column is held in memory."""
        packets: Any = self.packets
        if self.in_parts and ("packets", name) not in self.memo:
            return cast(Array, packets.values(name, index))
        return self.column(name)[index]

    @property
    def in_parts(self) -> bool:
        """Whether packets are so many that they are read from their file in parts, each time anew."""
        return bool(getattr(self.packets, "in_parts", False))

    def codes(self, name: str) -> tuple[Array, list[str]]:
        """Codes and names of `where` or `flow` of packets."""
        found: tuple[Array, list[str]] = self._memo(("codes", name), lambda: codes_of(self.packets, name))
        return found

    def release(self) -> None:
        """Forget the columns that were read whole, if packets are read in parts; what was computed of them stays."""
        if self.in_parts:
            for key in [key for key in self.memo if key[0] in ("packets", "codes")]:
                del self.memo[key]

    def _memo(self, key: Any, make: Any) -> Any:
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    @property
    def flows(self) -> list[str]:
        """Names of the point's flows, in their order."""
        return [flow.name for flow in self.point.flows]

    @property
    def switches(self) -> list[str]:
        """Names of the switches whose telemetry is among the packets."""
        found: list[str] = self._memo(("switches",), self._switches)
        return found

    def _switches(self) -> list[str]:
        codes, names = self.codes("where")
        there = np.unique(codes[self.column("ordinal") >= 0])
        self.release()
        return sorted(names[code] for code in there)

    def recorded(self, entity: str, collector: str) -> bool:
        """Whether a collector (capture, telemetry, tcp_info, tcp_events) ran at an entity, even if it saw nothing."""
        asked = self.point.collect
        if asked and collector not in asked.get(entity, {}):
            return False
        if collector == "telemetry":
            return entity in self.switches or "layout" in self.outcome.result_of(entity, collector)
        return collector in self.outcome.collected.get(entity, {}) or self._has_rows(entity, collector)

    def _has_rows(self, entity: str, collector: str) -> bool:
        table = {"capture": self.packets, "tcp_info": self.tcp_info, "tcp_events": self.tcp_events}[collector]
        if table is None:
            return False
        codes, names = codes_of(table, "where")
        return entity in names and bool((codes == names.index(entity)).any())

    def digest(self) -> str:
        return digest_of(self.packets, self.tcp_info, self.tcp_events)

    def save(self, directory: Path) -> None:
        """Write packets.parquet, tcp_info.parquet, tcp_events.parquet if there are any (zstd) and records.json.

        point.json and outcome.json, which are a point's own, lie beside them.
        """
        directory.mkdir(parents=True, exist_ok=True)
        for name in (*(name for name, _ in _TABLES), *([_TRACED] if self.tcp_events is not None else [])):
            table = _with_names(getattr(self, name))
            pq.write_table(table, directory / f"{name}.parquet", compression="zstd", compression_level=1)
        documents = {"counters": self.counters, "notes": self.notes}
        (directory / "records.json").write_text(json.dumps(documents, indent=1, sort_keys=True) + "\n")

    @classmethod
    def load(cls, directory: Path) -> Records:
        """Read what `save` wrote, and point.json and outcome.json, which an older records.json repeats.

        Raises RecordsError when something is missing or of another schema.
        """
        documents = read_object(directory / "records.json")
        tables = {name: _table(directory / f"{name}.parquet", schema) for name, schema in _TABLES}
        traced = directory / f"{_TRACED}.parquet"
        if traced.exists():
            tables[_TRACED] = _table(traced, TCP_EVENTS)
        return cls(
            **tables,
            counters=documents["counters"],
            notes=documents["notes"],
            point=_point(directory / "point.json", documents.get("point")),
            outcome=_outcome(directory / "outcome.json", documents.get("outcome")),
        )


def make_records(point: PointSpec, outcome: Outcome, raw: Path) -> Records:
    """Records of the raw files of a point.

    A file of an entity lies in RAW/ENTITY/ or in one directory below it (the task's that wrote it).
    Raises RecordsError, naming the file (and the byte), when something can't be read.
    """
    entities = sorted(path for path in raw.iterdir() if path.is_dir())
    told = _files(entities, "telemetry.bin")
    switches = {name: read_telemetry(path, outcome.result_of(name, "telemetry")) for name, path in told.items()}
    packets, notes = read_packets(_files(entities, "capture.pcap"), point, outcome, switches)
    tcp_info, more = read_tcp_info(_files(entities, "tcp_info.bin"), point, outcome)
    tcp_events, lacking = read_tcp_events(_files(entities, "tcp_events.bin"), point, outcome)
    counters = {entity.name: found for entity in entities if (found := read_counters(entity))}
    return Records(packets, tcp_info, counters, outcome, point, notes + more + lacking, tcp_events)


def load_raw(pointdir: Path) -> Records:
    """make_records() of POINTDIR/point.json, POINTDIR/raw/outcome.json and POINTDIR/raw/."""
    raw = pointdir / "raw"
    return make_records(_point(pointdir / "point.json"), _outcome(raw / "outcome.json"), raw)


def _point(path: Path, raw: Any = None) -> PointSpec:
    """Of a file, or of what an older records.json has.  Raises RecordsError."""
    try:
        return PointSpec.from_json(read_object(path) if raw is None else raw)
    except ValueError as error:
        raise RecordsError(path, str(error)) from error


def _outcome(path: Path, raw: Any = None) -> Outcome:
    try:
        return Outcome.from_json(read_object(path) if raw is None else raw)
    except ValueError as error:
        raise RecordsError(path, str(error)) from error


def _files(entities: list[Path], name: str) -> Mapping[str, Path]:
    """The file of that name of each entity that has one."""
    found = {entity.name: find_file(entity, name) for entity in entities}
    return {entity: path for entity, path in found.items() if path is not None}


def _with_names(table: pa.Table) -> pa.Table:
    """A table without rows with the names of its dictionary columns beside it: its file has none, and the digest covers
    them.  Any other as it is."""
    if table.num_rows:
        return table
    names = {field.name: codes_of(table, field.name)[1] for field in table.schema if pa.types.is_dictionary(field.type)}
    return table.replace_schema_metadata({_NAMES: json.dumps(names)})


def _named_again(table: pa.Table) -> pa.Table:
    """The table as it was before _with_names."""
    kept = (table.schema.metadata or {}).get(_NAMES.encode())
    if table.num_rows or kept is None:
        return table
    for name, names in loads(kept.decode()).items():
        column = names_column(np.empty(0, np.int16), [str(one) for one in names])
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _table(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        table = cleaned(read_parquet(path))
    except (OSError, pa.ArrowException) as error:
        raise RecordsError(path, f"can't be read as Parquet: {error}") from error
    if table.schema.names != schema.names:
        raise RecordsError(path, f"want the columns {', '.join(schema.names)}; got {', '.join(table.schema.names)}")
    try:
        return _named_again(table).cast(schema).combine_chunks()
    except (ValueError, TypeError, AttributeError, IndexError, pa.ArrowException) as error:
        raise RecordsError(path, f"want the names of an empty table's columns; got {error}") from error
