# SPDX-License-Identifier: Apache-2.0
"""Records of a flow "f" from `a` to `b`, written by hand: one line a packet, as its host saw it.

    TIME_US HOST > FLAGS [SEQ:END] [ack N] [KEY VALUE]…      (> leaves the host, < arrives)

FLAGS: letters of S F R P A U E C (E is ECE, C is CWR), - for none.  SEQ:END is of the payload; without it, of a SYN -1,
else what that side has next.  KEY: win, ecn (0 to 3), ts (VALUE/ECHO), sack (START:END,…), segs, conn, ae, where a
column of the packets table is set by its name too.  The order of lines is that of the captures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec, TimedFlow
from testctl.records import Records
from testctl.records.schema import PACKETS, RARE_COLUMNS, TCP_INFO, names_column
from testctl.rules.core.registry import rules
from testctl.rules.core.spec import Found
from testctl.rules.core.trace import trace_of

_FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16, "U": 32, "E": 64, "C": 128, "-": 0}
_USUAL = {
    "ack": -1, "length": 0, "segs": 1, "ecn": 0, "window": 65536, "tsval": -1, "tsecr": -1, "retrans": False,
    "queue_bytes": -1, "fate": 0, "left_ns": -1, "ordinal": -1, "first_ordinal": -1, "conn": 0, **RARE_COLUMNS,
}  # fmt: skip
HELLO = """
    0     a > S win 64000
    10000 a < SA ack 0 win 64000
    10000 a > A ack 0
"""
"""A handshake as the client's capture has it."""
HELLO_B = """
    5000  b < S win 64000
    5000  b > SA ack 0 win 64000
    15000 b < A ack 0
"""
"""The same handshake in the server's."""


def records(
    text: str,
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    options: Mapping[str, Any] | None = None,
    events: Any = None,
    samples: Any = None,
    counters: Mapping[str, Any] | None = None,
    outcome: Outcome | None = None,
    others: Sequence[TimedFlow] = (),
    generator: str = "tgen",
    duration_ns: int = 0,
) -> Records:
    """Records of these packets.

    options  of the flow's generator
    events, samples  tables of TCP_EVENTS and TCP_INFO
    others   flows of the point, none of whose packets are there
    """
    rows: list[dict[str, Any]] = []
    ends: dict[tuple[str, int, int], int] = {}
    for line in text.strip().splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        row: dict[str, Any] = dict(_USUAL)
        row["time_ns"], row["where"], row["out"] = int(float(words[0]) * 1000), words[1], words[2] == ">"
        row["flags"] = sum(_FLAGS[letter] for letter in words[3])
        rest = words[4:]
        row["direction"] = int((row["where"] == "a") != row["out"])
        row["seq"] = None
        if rest and ":" in rest[0]:
            start, end = rest.pop(0).split(":")
            row["seq"], row["length"] = int(start), int(end) - int(start)
        for key, value in zip(rest[::2], rest[1::2], strict=True):
            _set(row, key, value)
        side = (row["where"], row["direction"], row["conn"])
        if row["seq"] is None:
            row["seq"] = -1 if row["flags"] & 2 else ends.get(side, 0)
        end = row["seq"] + row["length"] + bool(row["flags"] & 1) + bool(row["flags"] & 2)
        row["retrans"] = row["length"] > 0 and end <= ends.get(side, -1)
        ends[side] = max(ends.get(side, -1), end)
        row["wire_bytes"] = row["length"] + 66 * row["segs"]
        row["flow"] = "f"
        rows.append(row)
    rows.sort(key=lambda row: row["time_ns"])
    arrays = {}
    for field in PACKETS:
        values = [row[field.name] for row in rows]
        if field.name in ("where", "flow"):
            names = sorted(set(values))
            arrays[field.name] = names_column(np.array([names.index(value) for value in values]), names)
        else:
            arrays[field.name] = pa.array(values, field.type)
    packets = pa.table(arrays, schema=PACKETS)
    conns = 1 + max(row["conn"] for row in rows)
    ports: dict[str, int] = {"server_port": 5001, "client_port": 40000, "duration_ns": duration_ns}
    flow = TimedFlow("f", "a", "b", generator, parallel=conns, options=dict(options or {}), **ports)
    point = PointSpec(id="made", settings=dict(settings or {}), flows=(flow, *others))
    tcp_info = TCP_INFO.empty_table() if samples is None else samples
    return Records(
        packets, tcp_info, dict(counters or {}), outcome or Outcome(wall={"traffic": 1.0}), point, tcp_events=events
    )


def _set(row: dict[str, Any], key: str, value: str) -> None:
    if key == "win":
        row["window"] = int(value)
    elif key == "ts":
        row["tsval"], row["tsecr"] = map(int, value.split("/"))
    elif key == "sack":
        for number, block in enumerate(value.split(","), 1):
            row[f"sack{number}_start"], row[f"sack{number}_end"] = map(int, block.split(":"))
    elif key in row:
        row[key] = int(value)
    else:
        raise ValueError(f"want a key of a packet; got {key!r}")


def found(rule: str, text: str, *, host: str = "a", **more: Any) -> Found:
    """What a rule finds at a host."""
    made = records(text, **more)
    return rules()[rule].found(trace_of(made, "f", "ab".index(host)))
