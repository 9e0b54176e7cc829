# SPDX-License-Identifier: Apache-2.0
"""Stalls as the report shows them: when, why, and the packets that prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from testctl.charts.time_sequence import FLAGS
from testctl.core.units import show_time
from testctl.metrics.stalls.table import CAUSES, ENDS
from testctl.records.schema import FATES, Ints

MAX = 200
"""Stalls that are shown, the longest ones."""

PROVEN = 20
"""Of these, how many are shown with their packets."""

EACH_SIDE = 4
"""Packets shown before and after the silence, beside those that the evidence names."""

_NAMED = ("last_sent_row", "received_row", "acked_row", "ender_row")
_SILENT = ("ACK", "PSH")
_CE = 3


@dataclass(frozen=True)
class Proof:
    """One packet of the proof in words; `after`: at or behind the end of the silence; `key`: the evidence names it."""

    time_ns: int
    where: str
    text: str
    after: bool
    key: bool


@dataclass(frozen=True)
class Stall:
    """One silence of a connection, [start_ns, end_ns) relative to T0."""

    flow: str
    conn: int
    start_ns: int
    end_ns: int
    cause: str
    label: str
    ended: str
    words: str
    proof: Sequence[Proof] = ()

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def title(self) -> str:
        """Why and how long, such as "ACK owed for 1448:2896, 200 ms"."""
        return f"{self.label}, {show_time(self.length_ns)}"

    def to_json(self) -> dict[str, Any]:
        """As the page's scripts read it."""
        return {
            "lane": f"{self.flow}/{self.conn}",
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "length": show_time(self.length_ns),
            "cause": self.label,
            "why": CAUSES.get(self.cause, self.cause.replace("_", " ")),
            "ended": self.ended,
            "proof": self.words,
            "packets": [
                [f"{item.time_ns / 1e9:.9f}", item.where, item.text, int(item.after), int(item.key)]
                for item in self.proof
            ],
        }


def read_stalls(stalls: pa.Table | None, packets: pa.Table | None, most: int = MAX) -> list[Stall]:
    """The longest stalls of a point in order of time; stalls as of testctl.metrics.stalls.STALLS.

    packets  of which the longest are shown; without it none are
    """
    if stalls is None or stalls.num_rows == 0:
        return []
    longest = np.argsort(-stalls["length_ns"].to_numpy(), kind="stable")[:most]
    rows = stalls.take(pa.array(longest)).to_pylist()
    proofs = [_proof(row, packets) if n < PROVEN and packets is not None else () for n, row in enumerate(rows)]
    found = [
        Stall(
            flow=row["flow"],
            conn=row["conn"],
            start_ns=row["start_ns"],
            end_ns=row["end_ns"],
            cause=row["cause"],
            label=_label(row),
            ended=ENDS.get(row["ended_by"], row["ended_by"]),
            words=row["proof"],
            proof=proof,
        )
        for row, proof in zip(rows, proofs, strict=True)
    ]
    return sorted(found, key=lambda stall: (stall.start_ns, stall.flow, stall.conn))


def _label(row: Mapping[str, Any]) -> str:
    cause = row["cause"]
    if cause in ("ack_owed", "delayed_ack") and row["acked"] >= 0 and row["owed_bytes"] > 0:
        name = "ACK owed" if cause == "ack_owed" else "delayed ACK"
        return f"{name} for {row['acked']}:{row['acked'] + row['owed_bytes']}"
    short = {"rto": "retransmission timeout", "tlp": "tail loss probe", "tokens": "waits for tokens"}
    return short.get(cause) or str(cause).replace("_", " ")


def _proof(row: Mapping[str, Any], packets: pa.Table) -> list[Proof]:
    named = {row[name] for name in _NAMED if row[name] >= 0}
    time_ns = packets["time_ns"].to_numpy()
    near: list[Ints] = [np.array(sorted(named), dtype=np.int64)]
    for low, high, newest in (
        (row["start_ns"] - row["length_ns"], row["start_ns"], True),
        (row["end_ns"], row["end_ns"] + row["length_ns"], False),
    ):
        first = int(np.searchsorted(time_ns, low))
        part = packets.slice(first, int(np.searchsorted(time_ns, high, side="right")) - first)
        mine = pc.and_(pc.equal(part["flow"], row["flow"]), pc.equal(part["conn"], row["conn"]))
        telling = pc.or_(pc.less(part["ordinal"], 0), pc.greater(part["fate"], 0))  # of a switch, only what it changed
        mine = pc.and_(mine, telling)
        rows = first + np.flatnonzero(mine.to_numpy())
        near.append(rows[-EACH_SIDE:] if newest else rows[:EACH_SIDE])
    shown = np.unique(np.concatenate(near))
    found = packets.take(pa.array(shown)).to_pylist()
    return [
        Proof(item["time_ns"], item["where"], _words(item), item["time_ns"] >= row["end_ns"], index in named)
        for index, item in zip(shown.tolist(), found, strict=True)
    ]


def _words(packet: Mapping[str, Any]) -> str:
    words = ["sends" if packet["out"] else "gets"]
    if packet["length"]:
        words.append(f"data {packet['seq']}:{packet['seq'] + packet['length']}")
    elif packet["ack"] >= 0:
        words.append(f"ACK {packet['ack']}")
    flags = [name for bit, name in enumerate(FLAGS) if packet["flags"] >> bit & 1]
    words += [name for name in flags if name not in _SILENT]
    if packet["ecn"] == _CE:
        words.append("CE")
    if packet["fate"]:
        words.append(f"({FATES[packet['fate']].replace('_', ' ')})")
    if packet["retrans"]:
        words.append("(retransmission)")
    return " ".join(words)
