# SPDX-License-Identifier: Apache-2.0
"""Reads a switch's telemetry: one record a packet that it handled, whatever became of it.

telemetry.bin holds records of one size, little-endian and packed; the byte layout is described by
the collector's result, which the outcome keeps under notes as "SWITCH: telemetry":

    {"layout": [{"name", "offset", "bytes"}…], "records": n, "lost": n, "clock_offset_ns": realtime - monotonic, …}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testctl.records.errors import RecordsError
from testctl.records.files import read_records
from testctl.records.schema import CE, FATES, Array, Ints

NEEDED = (
    "arrival_ns",
    "departure_ns",
    "queue_bytes",
    "wire_bytes",
    "verdict",
    "flow",
    "kind",
    "fate",
    "ordinal",
    "first_ordinal",
    "seq",
    "ack",
    "payload",
    "window",
    "flags",
    "ecn_in",
    "ecn_out",
)
"""Fields that a record must have; it may have others."""

SENT, BY_PROGRAM, FULL_BUFFER = 0, 1, 2
"""Verdicts of a record; any other is a packet that went astray."""

_ALIGNED = 8
_UNSIGNED = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8"}
_MARK = FATES.index("mark")
_DROPS = tuple(FATES.index(name) for name in ("drop", "lose"))
_BY_QUEUE, _BY_BUFFER, _ASTRAY = (FATES.index(name) for name in ("queue_mark", "buffer_drop", "other_drop"))


@dataclass(frozen=True)
class Telemetry:
    """The records of one switch in the order they were written.

    fields     name → column, as recorded; offset_ns: what makes a record's time one of CLOCK_REALTIME
    lost       records that found the ring full
    truncated  whether the file ends within a record
    """

    fields: Mapping[str, Array]
    offset_ns: int
    lost: int
    truncated: bool

    def __len__(self) -> int:
        return len(self.fields["flow"])


def read_telemetry(path: Path, result: Mapping[str, Any]) -> Telemetry:
    """The records of a file.  Raises RecordsError: no layout, a field that is missing, a count that is not so."""
    kind = _record(path, result.get("layout"))
    records, cut = read_records(path, kind)
    written = result.get("records", len(records))
    if len(records) != written:
        got = f"want {written} records of {kind.itemsize} bytes, as reported; got {len(records)}"
        raise RecordsError(path, got)
    fields = {name: np.ascontiguousarray(records[name]) for name in kind.names or ()}
    return Telemetry(fields, int(result.get("clock_offset_ns", 0)), int(result.get("lost", 0)), cut)


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


def columns(telemetry: Telemetry, rows: Array) -> dict[str, Array]:
    """The chosen records as columns that packets.py puts beside those of captures; times of CLOCK_REALTIME."""
    chosen = {name: column[rows] for name, column in telemetry.fields.items()}
    count = len(chosen["flow"])
    payload = chosen["payload"].astype(np.int32)
    number = chosen["flow"].astype(np.int64) - 1
    return {
        "time_ns": chosen["arrival_ns"].astype(np.int64) + telemetry.offset_ns,
        "left_ns": _left_ns(chosen, telemetry.offset_ns),
        "direction": (number & 1).astype(np.int8),
        "length": payload,
        "headers": chosen["wire_bytes"].astype(np.int32) - payload,
        "flags": chosen["flags"],
        "ecn": chosen["ecn_in"] & 3,
        "window": chosen["window"].astype(np.int64),
        "seq": chosen["seq"],
        "ack": chosen["ack"],
        "queue_bytes": _queue_bytes(chosen),
        "fate": _fates(chosen),
        "ordinal": chosen["ordinal"].astype(np.int32),
        "first_ordinal": chosen["first_ordinal"].astype(np.int32),
        "out": np.zeros(count, np.bool_),
        **{name: np.full(count, -1, np.int64) for name in ("tsval", "tsecr", "wscale")},
    }


def _queue_bytes(chosen: Mapping[str, Array]) -> Array:
    """What each found waiting at its port; -1 where it came to none."""
    queued = np.isin(chosen["verdict"], (SENT, FULL_BUFFER))
    return np.asarray(np.where(queued, np.minimum(chosen["queue_bytes"], 2**31 - 1).astype(np.int32), np.int32(-1)))


def _left_ns(chosen: Mapping[str, Array], offset_ns: int) -> Ints:
    """When each left; -1 where it was not sent."""
    sent = (chosen["departure_ns"] > 0) & (chosen["verdict"] == SENT)
    return np.asarray(np.where(sent, chosen["departure_ns"].astype(np.int64) + offset_ns, -1))


def _fates(chosen: Mapping[str, Array]) -> Array:
    """What happened to each packet, as FATES numbers it: not what was asked."""
    verdict, result = chosen["verdict"], chosen["fate"].astype(np.uint8)
    marked = (chosen["ecn_out"] & 3 == CE) & (chosen["ecn_in"] & 3 != CE)
    fate = np.where((result == _MARK) & ~marked & (chosen["ecn_in"] & 3 != CE), np.uint8(0), result)
    fate = np.where((verdict == SENT) & marked & (result == 0), np.uint8(_BY_QUEUE), fate)
    dropped = np.where(np.isin(result, _DROPS), result, np.uint8(_ASTRAY))
    fate = np.where(verdict != SENT, dropped, fate)
    return np.asarray(np.where(verdict == FULL_BUFFER, np.uint8(_BY_BUFFER), fate), np.uint8)
