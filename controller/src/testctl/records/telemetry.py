# SPDX-License-Identifier: Apache-2.0
"""Reads a switch's telemetry: one record a packet that it handled, whatever became of it.

telemetry.bin holds records of one size, little-endian and packed; the byte layout is described by
the collector's result, which the outcome keeps under notes as "SWITCH: telemetry":

    {"layout": [{"name", "offset", "bytes"}…], "records": n, "lost": n, "clock_offset_ns": realtime - monotonic, …}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from testctl.records.errors import RecordsError
from testctl.records.files import read_records
from testctl.records.schema import Array

_FIELDS = (
    "arrival_ns departure_ns queue_bytes wire_bytes verdict flow kind fate ordinal first_ordinal seq ack payload "
    "window flags ecn_in ecn_out"
)
NEEDED = tuple(_FIELDS.split(" "))
"""Fields that a record must have, in the order of native/packets.h; it may have others."""

_ALIGNED = 8
_UNSIGNED = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8"}


@dataclass(frozen=True)
class Telemetry:
    """The records of one switch in the order they were written, or in_order(), mapped into memory.

    records    as recorded, with at least the fields NEEDED; offset_ns: what makes a record's time one of CLOCK_REALTIME
    lost       records for which the ring had no space
    truncated  whether the file ends within a record
    """

    records: Array
    offset_ns: int
    lost: int
    truncated: bool

    def __len__(self) -> int:
        return len(self.records)


def read_telemetry(path: Path, result: Mapping[str, Any]) -> Telemetry:
    """The records of a file.  Raises RecordsError: no layout, a field that is missing, a count that is not so."""
    kind = _record(path, result.get("layout"))
    records, cut = read_records(path, kind)
    written = result.get("records", len(records))
    if len(records) != written:
        got = f"want {written} records of {kind.itemsize} bytes, as reported; got {len(records)}"
        raise RecordsError(path, got)
    return Telemetry(records, int(result.get("clock_offset_ns", 0)), int(result.get("lost", 0)), cut)


def in_order(telemetry: Telemetry) -> Telemetry:
    """The records in order of arrival: one of a packet that was kept is written when that is sent."""
    order = np.argsort(telemetry.records["arrival_ns"], kind="stable")
    return replace(telemetry, records=telemetry.records[order])


def _record(path: Path, layout: Any) -> np.dtype[Any]:
    """The record as numpy reads it."""
    if not isinstance(layout, list) or not all(isinstance(item, Mapping) for item in layout) or not layout:
        raise RecordsError(path, "want a layout in its collector's result; got none")
    names = [str(item["name"]).rpartition(".")[2] for item in layout]
    if missing := [name for name in NEEDED if name not in names]:
        raise RecordsError(path, f"want fields {', '.join(missing)} in the layout; got {', '.join(names)}")
    sizes, offsets = [int(item["bytes"]) for item in layout], [int(item["offset"]) for item in layout]
    if odd := [name for name, size in zip(names, sizes, strict=True) if size not in _UNSIGNED]:
        raise RecordsError(path, f"want fields of 1, 2, 4 or 8 bytes; got another size for {', '.join(odd)}")
    end = max(offset + size for offset, size in zip(offsets, sizes, strict=True))
    return np.dtype(
        {
            "names": names,
            "formats": [_UNSIGNED[size] for size in sizes],
            "offsets": offsets,
            "itemsize": -(-end // _ALIGNED) * _ALIGNED,
        }
    )
