# SPDX-License-Identifier: Apache-2.0
"""Writes the telemetry of a switch for made-up traffic: what controller.tests.support.synthetic is for captures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from testctl.records.schema import CE, FATES, FIN, RST, SYN, Array

from controller.tests.support.synthetic import T0_NS

OFFSET_NS = T0_NS - 10**12
"""CLOCK_REALTIME - CLOCK_MONOTONIC of the made-up switch."""

HEAD = {
    "arrival_ns": 8,
    "departure_ns": 8,
    "queue_bytes": 4,
    "wire_bytes": 2,
    "ingress_port": 1,
    "egress_port": 1,
    "verdict": 1,
}
TAP = {
    "flow": 2,
    "kind": 1,
    "fate": 1,
    "ordinal": 4,
    "first_ordinal": 4,
    "seq": 4,
    "ack": 4,
    "payload": 2,
    "window": 2,
    "flags": 1,
    "ecn_in": 1,
    "ecn_out": 1,
    "park": 1,
}
FIELDS = HEAD | TAP


def layout() -> list[dict[str, object]]:
    """Name, offset and bytes of every field, packed in order."""
    found, at = [], 0
    for name, size in FIELDS.items():
        found.append({"name": name, "offset": at, "bytes": size})
        at += size
    return found


def passage(frames: Mapping[str, Array], *, latency_ns: int = 1000, queue_bytes: int | Array = 0) -> dict[str, Array]:
    """What a switch without fates writes for packets (columns of synthetic.frames) in their order.

    Flow ids are those of one flow whose client ports count up from 40000.
    """
    count = len(frames["time_ns"])
    flags, length = frames["flags"], frames["length"]
    conn = np.where(frames["src"] == 0, frames["sport"], frames["dport"]) - 40000
    control = flags & (SYN | FIN | RST) > 0
    columns = {name: np.zeros(count, np.int64) for name in FIELDS}
    columns |= {
        "arrival_ns": frames["time_ns"] - OFFSET_NS,
        "departure_ns": frames["time_ns"] - OFFSET_NS + latency_ns,
        "queue_bytes": np.broadcast_to(np.asarray(queue_bytes, np.int64), count).copy(),
        "wire_bytes": 66 + length + np.where(flags & SYN > 0, 8, 0),
        "ingress_port": frames["src"] + 1,
        "egress_port": 2 - frames["src"],
        "flow": 1 + 2 * conn + frames["src"],
        "kind": np.where(length > 0, 1, np.where(control, 0, 2)),
        "seq": frames["seq"] & 0xFFFFFFFF,
        "ack": frames["ack"] & 0xFFFFFFFF,
        "payload": length,
        "window": frames["window"],
        "flags": flags,
        "ecn_in": frames["ecn"],
        "ecn_out": frames["ecn"],
    }
    columns = {name: column.copy() for name, column in columns.items()}
    columns["ordinal"], columns["first_ordinal"] = _counted(columns)
    return columns


def _counted(columns: Mapping[str, Array]) -> tuple[Array, Array]:
    """Ordinals as the program counts them, packet by packet."""
    ordinal, first = np.zeros_like(columns["flow"]), np.zeros_like(columns["flow"])
    seen: dict[tuple[int, int], int] = {}
    new: dict[int, int] = {}
    highest: dict[int, int] = {}
    for row in range(len(ordinal)):
        flow, kind, seq, flags, length = (int(columns[n][row]) for n in ("flow", "kind", "seq", "flags", "payload"))
        if flags & SYN:
            highest[flow] = (seq + 1) % 2**32
        if not kind:
            continue
        ordinal[row] = seen[flow, kind] = seen.get((flow, kind), 0) + 1
        if kind == 1:
            top = highest.setdefault(flow, seq)
            if (seq - top) % 2**32 < 2**31:
                first[row] = new[flow] = new.get(flow, 0) + 1
            if (seq + length - top) % 2**32 < 2**31:
                highest[flow] = (seq + length) % 2**32
    return ordinal, first


def befall(columns: dict[str, Array], fate: str, rows: Array) -> None:
    """Let a fate (a name of FATES) happen to some packets."""
    if fate in ("drop", "lose", "buffer_drop", "other_drop", "link_drop"):
        columns["departure_ns"][rows] = 0
        columns["verdict"][rows] = {"buffer_drop": 2, "other_drop": 3, "link_drop": 4}.get(fate, 1)
    if fate in ("mark", "queue_mark"):
        columns["ecn_out"][rows] = CE
    if fate == "clear":
        columns["ecn_out"][rows] = 2
    if fate not in ("queue_mark", "buffer_drop", "other_drop", "link_drop"):
        columns["fate"][rows] = FATES.index(fate)


def write_telemetry(pointdir: Path, columns: Mapping[str, Array], *, switch: str = "switch", lost: int = 0) -> None:
    """Put the telemetry into a point written by synthetic.write_point, and its collector's result."""
    fields = layout()
    names, sizes = list(FIELDS), list(FIELDS.values())
    offsets = [int(str(field["offset"])) for field in fields]
    size = -(-(offsets[-1] + sizes[-1]) // 8) * 8
    records = np.zeros(
        len(columns["flow"]),
        np.dtype({"names": names, "formats": [f"<u{n}" for n in sizes], "offsets": offsets, "itemsize": size}),
    )
    for name in names:
        records[name] = columns[name]
    path = pointdir / "raw" / switch / "telemetry" / "telemetry.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(records.tobytes())
    said = {"layout": fields, "records": len(records), "lost": lost, "clock_offset_ns": OFFSET_NS}
    outcome = json.loads((pointdir / "raw" / "outcome.json").read_text())
    outcome.setdefault("collected", {}).setdefault(switch, {})["telemetry"] = said
    (pointdir / "raw" / "outcome.json").write_text(json.dumps(outcome))
