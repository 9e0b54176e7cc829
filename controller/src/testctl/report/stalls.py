# SPDX-License-Identifier: Apache-2.0
"""Stalls as the report shows them: when, why, and the packets that prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from testctl.report.style import show_time

PROOF_EACH_SIDE = 5
"""Packets shown before and after the silence."""

_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
_ECN = ("", "ECT(1)", "ECT(0)", "CE")


@dataclass(frozen=True)
class Proof:
    """One packet of the proof, as a line of text a TCP person reads; `after` it ended the silence."""

    time_ns: int
    where: str
    text: str
    after: bool


@dataclass(frozen=True)
class Stall:
    """One silence of a connection, [start_ns, end_ns) relative to T0."""

    flow: str
    conn: int
    start_ns: int
    end_ns: int
    cause: str
    label: str
    proof: Sequence[Proof] = ()

    @property
    def length_ns(self) -> int:
        """How long it lasted."""
        return self.end_ns - self.start_ns

    @property
    def title(self) -> str:
        """Why and how long, such as "ACK owed for 1448:2896, 200 ms"."""
        return f"{self.label or self.cause}, {show_time(self.length_ns)}"


def read_stalls(stalls: pa.Table | None, packets: pa.Table, most: int = 200) -> list[Stall]:
    """The longest `most` stalls of a point, in order of time, each with its packets."""
    if stalls is None or stalls.num_rows == 0:
        return []
    found = [_stall(row) for row in stalls.to_pylist()]
    kept = sorted(sorted(found, key=lambda s: -s.length_ns)[:most], key=lambda s: s.start_ns)
    return [_with_proof(stall, packets) for stall in kept]


def _stall(row: Mapping[str, Any]) -> Stall:
    start = int(row["start_ns"])
    end = int(row["end_ns"]) if "end_ns" in row else start + int(row["length_ns"])
    cause = str(row.get("cause") or "unknown")
    label = str(row.get("label") or row.get("detail") or cause.replace("_", " "))
    return Stall(str(row.get("flow") or ""), int(row.get("conn") or 0), start, end, cause, label)


def _with_proof(stall: Stall, packets: pa.Table) -> Stall:
    mine = packets.filter(pc.and_(pc.equal(packets["flow"], stall.flow), pc.equal(packets["conn"], stall.conn)))
    times = mine["time_ns"].to_numpy()
    before = int(np.searchsorted(times, stall.start_ns, side="right"))
    after = max(int(np.searchsorted(times, stall.end_ns, side="left")), before)
    rows = [(mine.slice(max(before - PROOF_EACH_SIDE, 0), min(before, PROOF_EACH_SIDE)), False)]
    rows.append((mine.slice(after, PROOF_EACH_SIDE), True))
    proof = [_proof(row, late) for part, late in rows for row in part.to_pylist()]
    return Stall(stall.flow, stall.conn, stall.start_ns, stall.end_ns, stall.cause, stall.label, proof)


def _proof(row: Mapping[str, Any], after: bool) -> Proof:
    flags = int(row["flags"])
    words = ["→" if row["direction"] == 0 else "←", "sent" if row.get("out") else "got"]
    if row["length"]:
        words.append(f"data {row['seq']}:{row['seq'] + row['length']} ({row['length']} B)")
    if row["ack"] >= 0 and not (row["length"] and row["direction"] == 0):
        words.append(f"ack {row['ack']}")
    words += [name for bit, name in enumerate(_FLAGS) if flags >> bit & 1 and name not in ("ACK", "PSH")]
    if row["ecn"] == 3:
        words.append(_ECN[3])
    if row["retrans"]:
        words.append("retransmission")
    return Proof(int(row["time_ns"]), str(row["where"]), " ".join(words), after)
