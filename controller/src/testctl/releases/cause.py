# SPDX-License-Identifier: Apache-2.0
"""The kind of difference that is the first between two records of a point: a sentence that points of one cause share.

What a host sends is compared packet by packet, in its order.  Windows and PSH are set aside, which differ from the
first packets on where a kernel has other buffers, and so are times, for microseconds of an interrupt move all that
comes later.  What they lead to is kept; so is, where all packets are the same, the first that is a millisecond or more
earlier or later: a timer's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testctl.compare.exact import Difference
from testctl.compare.packet import ECN
from testctl.records.parquet import read_parquet
from testctl.records.schema import ACK, CE, FIN, PSH, RST, SACK_EDGES, SYN, Ints, codes_of, numbers_of
from testctl.results import layout

_SACK = SACK_EDGES[0]
_NAMES = ("where", "flow")
_STREAM = ("flow", "conn", "direction")
_SENT = ("seq", "ack", "length", "flags", "ecn", *SACK_EDGES)
_COLUMNS = ("time_ns", "out", "conn", "direction", "window", "retrans", *_SENT)
_MOVED = (
    ("seq", "of later bytes", "of earlier bytes"),
    ("length", "that is longer", "that is shorter"),
    ("ack", "of a later byte", "of an earlier byte"),
)

LATE_NS = 1_000_000
"""From that on a packet that is the same counts as later."""

Columns = Mapping[str, Any]
Row = Mapping[str, Any]
Pair = tuple[Row | None, Row | None]


@dataclass(frozen=True)
class Cause:
    """key: who sends what instead of what, and when; packets: the first one that differs, of both kernels, in words."""

    key: str
    packets: tuple[str, ...] = ()


def cause(old: Path, new: Path, difference: Difference) -> Cause:
    first = difference.first
    if first is None or first.note or first.what != "packet":
        return Cause(first.note or f"the same packets, other {first.what}" if first else "the same packets")
    sides = _columns(old), _columns(new)
    differ = _first(_unlike(*sides, _SENT)) or _first(_unlike(*sides, ("time_ns",)))
    if differ is None:
        other = "times" if _first(_unlike(*sides, ("window",))) is None else "window"
        return Cause(f"the same packets but for their {other}")
    before, after = differ
    shown = after or before
    assert shown is not None
    who = "the receiver" if shown["direction"] else "the sender"
    if before is None or after is None:
        what = f"{_kind(shown)} {'more' if before is None else 'less'}"
    else:
        what = _change(before, after)
    key = f"{who}: {what}, {_phase(sides[0], before or shown)}"
    return Cause(key, tuple("none" if row is None else _line(row) for row in differ))


def _first(pairs: Iterator[Pair]) -> Pair | None:
    return min(pairs, key=lambda pair: min(row["time_ns"] for row in pair if row), default=None)


def _unlike(a: Columns, b: Columns, names: Sequence[str]) -> Iterator[Pair]:
    """Of each end of a connection the first packet whose columns differ (times by LATE_NS), on both sides."""
    ours, theirs = _streams(a), _streams(b)
    for stream in sorted(ours.keys() | theirs.keys()):
        rows = ours.get(stream, np.empty(0, int)), theirs.get(stream, np.empty(0, int))
        both = min(map(len, rows))
        unlike = np.zeros(both, bool)
        for name in names:
            old, new = a[name][rows[0][:both]], b[name][rows[1][:both]]
            unlike |= np.abs(new - old) >= LATE_NS if name == "time_ns" else old != new
        at = int(unlike.argmax()) if unlike.any() else both
        if at < max(map(len, rows)):
            before, after = (
                _row(side, of[at]) if at < len(of) else None for side, of in zip((a, b), rows, strict=True)
            )
            yield before, after


def _streams(side: Columns) -> dict[Any, Ints]:
    sent = np.flatnonzero(side["out"])
    keys = list(zip(*(side[name][sent].tolist() for name in _STREAM), strict=True))
    streams: dict[Any, list[int]] = {}
    for key, index in zip(keys, sent.tolist(), strict=True):
        streams.setdefault(key, []).append(index)
    return {key: np.array(of) for key, of in streams.items()}


def _change(before: Row, after: Row) -> str:
    kind = _kind(after)
    if all(before[name] == after[name] for name in _SENT):
        return f"{kind} {'later' if after['time_ns'] > before['time_ns'] else 'earlier'}"
    if _kind(before) != kind:
        return f"{kind} instead of {_kind(before)}"
    for name, more, less in _MOVED:
        if before[name] != after[name]:
            return f"{kind} {more if after[name] > before[name] else less}"
    if before["ecn"] != after["ecn"]:
        return f"{kind} with {ECN[after['ecn']]} instead of {ECN[before['ecn']]}"
    return f"{kind} with other {'flags' if before['flags'] != after['flags'] else 'SACK blocks'}"


def _phase(side: Columns, row: Row) -> str:
    """What the connection went through before."""
    earlier = (side["time_ns"] < row["time_ns"]) & (side["flow"] == row["flow"]) & (side["conn"] == row["conn"])
    if not (earlier & (side["length"] > 0)).any():
        return "before any data"
    if (earlier & side["retrans"]).any():
        return "after a retransmission"
    if (earlier & (side[_SACK] >= 0)).any():
        return "after a gap"
    return "after a mark" if (earlier & (side["ecn"] == CE)).any() else "before any loss"


def _kind(row: Row) -> str:
    flags = row["flags"]
    if flags & SYN:
        return "SYN-ACK" if flags & ACK else "SYN"
    if flags & RST:
        return "RST"
    if row["length"]:
        return "retransmission" if row["retrans"] else "data"
    return "FIN" if flags & FIN else "ACK with SACK" if row[_SACK] >= 0 else "ACK"


def _line(row: Row) -> str:
    parts = [f"{row['time_ns'] / 1e6:.6f} ms", f"{row['where']} sends {_kind(row)} of {row['flow']}"]
    parts += [f"seq {row['seq']}", f"ack {row['ack']}", f"{row['length']} B", f"window {row['window']}"]
    return ", ".join([*parts, f"ECN {ECN[row['ecn']]}"])


def _columns(point: Path) -> Columns:
    table = read_parquet(point / layout.PACKETS, [*_COLUMNS, *_NAMES])
    columns = {name: numbers_of(table, name) for name in _COLUMNS}
    columns["flags"] = columns["flags"] & ~np.uint8(PSH)
    for name in _NAMES:
        codes, names = codes_of(table, name)
        columns[name] = np.array(names)[codes]
    return columns


def _row(side: Columns, index: int) -> Row:
    return {name: column[index].item() for name, column in side.items()}
