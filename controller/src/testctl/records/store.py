# SPDX-License-Identifier: Apache-2.0
"""Records of a point: made from raw output, saved as Parquet, loaded again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from testctl_agent.spec import fate
from testctl_agent.spec.untrusted import Named, loads, misfit

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec, is_background
from testctl.records.counters import COUNTED, read_counters
from testctl.records.digest import digest_of
from testctl.records.errors import RecordsError
from testctl.records.files import find_file, read_object
from testctl.records.packets import read_packets
from testctl.records.parquet import cleaned, read_parquet, write_numbers
from testctl.records.port_queue import check_drops, with_ports
from testctl.records.requests import read_requests
from testctl.records.rows import take
from testctl.records.schema import (
    PACKETS,
    REQUESTS,
    TCP_EVENTS,
    TCP_INFO,
    Array,
    Ints,
    codes_of,
    names_column,
    numbers_of,
    others,
    taken,
)
from testctl.records.tcp_events import read_tcp_events
from testctl.records.tcp_info import read_tcp_info
from testctl.records.telemetry import in_order, read_telemetry

_TABLES = (("packets", PACKETS), ("tcp_info", TCP_INFO))
_OPTIONAL = (("tcp_events", TCP_EVENTS), ("requests", REQUESTS))
"""Tables that not every point has."""
_AT_ONCE = 1 << 16
T = TypeVar("T")
_NAMES = "testctl.names"
"""In the metadata of an empty table's file: {column: names}."""


@dataclass
class Records:
    """All that metrics may read of a point.

    packets, tcp_info: tables of schema PACKETS and TCP_INFO; tcp_events: what kernels traced, schema TCP_EVENTS
    (None: nobody traced); requests: of the applications, schema REQUESTS (None: no flow makes any);
    counters: {entity: differences};
    point, outcome: what was requested and what became of it; notes: what a reader should know (truncated captures, …).
    `memo` keeps what was computed from them; nothing may be changed after the first metric.
    """

    packets: pa.Table
    tcp_info: pa.Table
    counters: dict[str, Any]
    outcome: Outcome
    point: PointSpec
    notes: list[str] = field(default_factory=list)
    tcp_events: pa.Table | None = None
    requests: pa.Table | None = None
    memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def column(self, name: str) -> Array:
        """A numeric column of packets, converted once."""
        column: Array = self._memo(("packets", name), lambda: numbers_of(self.packets, name))
        return column

    def values(self, name: str, index: Ints) -> Array:
        """A numeric column of packets at ascending rows; one in pieces, or in a large file, is not held whole."""
        packets: Any = self.packets
        if self.in_parts and ("packets", name) not in self.memo:
            return cast(Array, packets.values(name, index))
        if ("packets", name) not in self.memo:
            column = packets.column(name)
            if column.num_chunks > 1:
                return taken(column, index)
            if pa.types.is_boolean(column.type):
                return take(numbers_of(packets, name), index)  # which are not kept: they take eight times the memory
        return take(self.column(name), index)

    def others(self, name: str, index: Ints, usual: int) -> tuple[Ints, Array]:
        """(which of ascending rows have another number in a column than the usual one, these numbers)."""
        if not self.in_parts and self.packets.column(name).num_chunks > 1:
            return others(self.packets.column(name), index, usual)
        values = self.values(name, index)
        places = np.flatnonzero(values != usual)
        return places, values[places]

    @property
    def in_parts(self) -> bool:
        """Whether there are too many packets for memory: they are read from their file in parts, each time anew."""
        return bool(getattr(self.packets, "in_parts", False))

    def codes(self, name: str) -> tuple[Array, list[str]]:
        """Codes and names of `where` or `flow` of packets."""
        codes: tuple[Array, list[str]] = self._memo(("codes", name), lambda: codes_of(self.packets, name))
        return codes

    def release(self) -> None:
        """Forget the columns that were read whole, if packets are read in parts; what was computed of them stays."""
        if self.in_parts:
            for key in [key for key in self.memo if key[0] in ("packets", "codes")]:
                del self.memo[key]

    def _memo(self, key: Any, make: Any) -> Any:
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    def snmp(self, host: str) -> dict[str, int]:
        """What the kernel of a host counted of IP and TCP, by names such as "TcpExt.TCPTimeouts"; {} if not known."""
        counters: dict[str, Any] = self.counters.get(host, {})
        return dict(counters.get("snmp", {}))

    @property
    def flows(self) -> list[str]:
        return [flow.name for flow in self.point.flows]

    @property
    def plans_flows(self) -> list[str]:
        """Names of the flows that the plan has: without the background traffic of ports."""
        return [name for name in self.flows if not is_background(name)]

    @property
    def switches(self) -> list[str]:
        """Names of the switches whose telemetry is among the packets."""
        switches: list[str] = self._memo(("switches",), self._switches)
        return switches

    def _switches(self) -> list[str]:
        codes, names = self.codes("where")
        counted = self.column("ordinal")
        is_switch = np.zeros(len(names), np.bool_)
        for low in range(0, len(codes), _AT_ONCE):
            part = slice(low, low + _AT_ONCE)
            is_switch[codes[part][counted[part] >= 0]] = True
        self.release()
        return [names[code] for code in sorted(np.flatnonzero(is_switch), key=names.__getitem__)]

    def recorded(self, entity: str, collector: str) -> bool:
        """Whether a collector (capture, telemetry, tcp_info, tcp_events) ran at an entity, even if it saw nothing."""
        planned = self.point.collect
        if planned and collector not in planned.get(entity, {}):
            return False
        if collector == "telemetry":
            return entity in self.switches or "layout" in self.outcome.result_of(entity, collector)
        if collector in self.outcome.collected.get(entity, {}):
            return True
        table = {"capture": self.packets, "tcp_info": self.tcp_info, "tcp_events": self.tcp_events}[collector]
        if table is None:
            return False
        codes, names = codes_of(table, "where")
        return entity in names and bool((codes == names.index(entity)).any())

    def digest(self) -> str:
        return digest_of(self.packets, self.tcp_info, self.tcp_events, self.requests)

    def save(self, directory: Path) -> None:
        """Write packets.parquet, tcp_info.parquet, tcp_events.parquet and requests.parquet if there are any, and
        records.json.

        point.json and outcome.json are not among them: a point writes them itself.
        """
        directory.mkdir(parents=True, exist_ok=True)
        more = [name for name, _ in _OPTIONAL if getattr(self, name) is not None]
        for name in (*(name for name, _ in _TABLES), *more):
            table = _with_names(getattr(self, name))
            if name == "packets":
                write_numbers(table, directory / f"{name}.parquet")
            else:
                pq.write_table(table, directory / f"{name}.parquet", compression="zstd", compression_level=1)
        documents = {"counters": self.counters, "notes": self.notes}
        (directory / "records.json").write_text(json.dumps(documents, indent=1, sort_keys=True) + "\n")

    @classmethod
    def load(cls, directory: Path) -> Records:
        """Read what `save` wrote, and point.json and outcome.json.

        Raises RecordsError when something is missing or of another schema.
        """
        documents = read_object(path := directory / "records.json")
        if why := misfit(documents, {"counters": Named(COUNTED), "notes": [str]}):
            raise RecordsError(path, why)
        tables = {name: _table(directory / f"{name}.parquet", schema) for name, schema in _TABLES}
        for name, schema in _OPTIONAL:
            if (path := directory / f"{name}.parquet").exists():
                tables[name] = _table(path, schema)
        return cls(
            **tables,
            counters=documents["counters"],
            notes=documents["notes"],
            point=_parsed(PointSpec.from_json, directory / "point.json"),
            outcome=_parsed(Outcome.from_json, directory / "outcome.json"),
        )


def make_records(point: PointSpec, outcome: Outcome, raw: Path) -> Records:
    """Records of the raw files of a point.

    A file of an entity lies in RAW/ENTITY/ or in one directory below it (the task's that wrote it).
    Raises RecordsError, naming the file (and the byte), when something can't be read.
    """
    entities = sorted(path for path in raw.iterdir() if path.is_dir())
    switches = {}
    for name, path in _files(entities, "telemetry.bin").items():
        switches[name] = read_telemetry(path, outcome.result_of(name, "telemetry"))
        rules = fate.parse(str(point.settings.get(name, {}).get("fate", fate.NONE)))
        if any(rule.action == "swap" for rule in rules):
            switches[name] = in_order(switches[name])
    counters = {entity.name: counted for entity in entities if (counted := read_counters(entity))}
    for name, path in _files(entities, "port_queue.bin").items():
        switches[name] = with_ports(switches[name], path, outcome.result_of(name, "port_queue"))
        check_drops(switches[name], path, counters.get(name, {}).get("qdisc", ()))
    packets, notes = read_packets(_files(entities, "capture.pcap"), point, outcome, switches)
    samples = [_files(entities, name) for name in ("tcp_info.bin", "tcp_info6.bin")]
    by_entity = {name: [files[name] for files in samples if name in files] for name in samples[0]}
    tcp_info, more = read_tcp_info(by_entity, point, outcome)
    tcp_events, lacking = read_tcp_events(_files(entities, "tcp_events.bin"), point, outcome)
    requests, unknown = read_requests(raw, point, outcome)
    return Records(packets, tcp_info, counters, outcome, point, notes + more + lacking + unknown, tcp_events, requests)


def load_raw(pointdir: Path) -> Records:
    """make_records() of POINTDIR/point.json, POINTDIR/raw/outcome.json and POINTDIR/raw/."""
    raw = pointdir / "raw"
    point = _parsed(PointSpec.from_json, pointdir / "point.json")
    return make_records(point, _parsed(Outcome.from_json, raw / "outcome.json"), raw)


def _parsed(parse: Callable[[Any], T], path: Path) -> T:
    """The object of a JSON file.  Raises RecordsError."""
    try:
        return parse(read_object(path))
    except ValueError as error:
        raise RecordsError(path, str(error)) from error


def _files(entities: list[Path], name: str) -> Mapping[str, Path]:
    return {entity.name: path for entity in entities if (path := find_file(entity, name)) is not None}


def _with_names(table: pa.Table) -> pa.Table:
    """A table without rows, with the names of its dictionary columns as metadata: its file has none, and the digest
    covers them.  Any other table is unchanged."""
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
        column = names_column(np.empty(0, np.int16), [str(text) for text in names])
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _table(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        table = cleaned(read_parquet(path, becomes=schema))
    except (OSError, pa.ArrowException) as error:
        raise RecordsError(path, f"can't be read as Parquet: {error}") from error
    if table.schema.names != schema.names:
        raise RecordsError(path, f"want the columns {', '.join(schema.names)}; got {', '.join(table.schema.names)}")
    try:
        return _named_again(table).cast(schema).combine_chunks()
    except (ValueError, TypeError, AttributeError, IndexError, pa.ArrowException) as error:
        raise RecordsError(path, f"want the names of an empty table's columns; got {error}") from error
