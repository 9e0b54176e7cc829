# SPDX-License-Identifier: Apache-2.0
"""How far two conversations go together: the packets at the sender one by one, then what they add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testctl.core.units import show_rate, show_time
from testctl.records import Records
from testctl.records.schema import SACK_EDGES, Ints
from testctl.reproduce.application import Application

_DATA = ("flow", "conn", "seq", "length")
_PACKET = (*_DATA, "direction", "out", "ack", "flags", "ecn")
_EVERY = (*_PACKET, "time_ns", "segs", "window", *SACK_EDGES)
NEAR_NS = 50_000
"""Difference of times up to which data was sent at the same time: what a host takes for a step varies."""
WITHIN = 0.02
"""Relative difference up to which sending rate, losses and completion are the same."""


@dataclass(frozen=True)
class Sum:
    """What a flow did: bit/s of its frames at the sender from the first to the last data, retransmissions, and ns from
    its SYN to the last acknowledgement of data."""

    sent_bps: float
    retransmitted: int
    completion_ns: int

    def apart(self, other: Sum) -> tuple[str, ...]:
        """The names of those that differ by more than WITHIN."""
        pairs = {
            "sending rate": (self.sent_bps, other.sent_bps),
            "losses": (self.retransmitted, other.retransmitted),
            "completion": (self.completion_ns, other.completion_ns),
        }
        return tuple(name for name, (a, b) in pairs.items() if abs(a - b) > WITHIN * max(abs(a), abs(b)))


@dataclass(frozen=True)
class Alignment:
    """A candidate compared with the capture, at one host.

    rows       packets of the capture there
    same       how many from the first on are the same in all columns, with times; `packets`: in numbers and flags
    data       of how many data packets from the first on flow, number and length are the same; `timed`: also the time,
               within NEAR_NS; `sent`: all data packets
    whole      whether all packets are the same, and none more
    first      the first difference, in words; of_window: it is a receive window alone
    sums       {flow: (of the capture, of the candidate)}
    """

    rows: int
    same: int
    packets: int
    data: int
    timed: int
    sent: int
    whole: bool
    first: str
    of_window: bool
    sums: Mapping[str, tuple[Sum, Sum]]

    @property
    def all_data(self) -> bool:
        """Whether all data was sent at such times."""
        return self.timed == self.sent

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """The greater the closer."""
        return self.whole, self.timed, self.data, self.same

    @property
    def apart(self) -> dict[str, tuple[str, ...]]:
        """{flow: what differs by more than WITHIN}."""
        return {name: names for name, (a, b) in self.sums.items() if (names := a.apart(b))}

    def text(self) -> str:
        if self.whole:
            return f"all {self.rows} packets at the sender are the same, with their times"
        share = self.timed / max(self.sent, 1)
        text = (
            f"the same from the first on: {self.data} of {self.sent} data packets, {self.timed} ({share:.0%}) in time"
        )
        return f"{text}, and {self.same} of {self.rows} packets in all columns; {self.first}"


def align(
    captured: Records, host: str, made: Records, there: str, flows: Mapping[str, Sequence[Application]]
) -> Alignment:
    """Compare packets of `host` in the capture with those at `there` in a candidate, whose flows have these names."""
    ours = {
        (app.flow, app.conn): (number, at) for number, apps in enumerate(flows.values()) for at, app in enumerate(apps)
    }
    theirs = {(name, at): (number, at) for number, (name, apps) in enumerate(flows.items()) for at in range(len(apps))}
    a, b = _rows(captured, host, ours), _rows(made, there, theirs)
    same, packets = _common(a, b, _EVERY), _common(a, b, _PACKET)
    reverse = np.array([apps[0].reverse for apps in flows.values()])
    sent = [
        {name: column[(rows["length"] > 0) & (rows["direction"] == reverse[rows["flow"]])]
         for name, column in rows.items()} for rows in (a, b)
    ]  # fmt: skip
    data = _common(sent[0], sent[1], _DATA)
    off = np.abs(sent[0]["time_ns"][:data] - sent[1]["time_ns"][:data]) > NEAR_NS
    timed = int(off.argmax()) if off.any() else data
    counts = [len(rows["seq"]) for rows in (a, b)]
    whole = counts[0] == counts[1] == same
    sums = {
        name: (_sum(a, number, apps[0].reverse), _sum(b, number, apps[0].reverse))
        for number, (name, apps) in enumerate(flows.items())
    }
    first = "" if whole else _difference(a, b, same, list(flows))
    alone = same < min(counts) and [name for name in _EVERY if a[name][same] != b[name][same]] == ["window"]
    return Alignment(counts[0], same, packets, data, timed, len(sent[0]["seq"]), whole, first, alone, sums)


def _rows(records: Records, host: str, known: Mapping[tuple[str, int], tuple[int, int]]) -> dict[str, Ints]:
    where, places = records.codes("where")
    rows = np.flatnonzero(where == places.index(host)) if host in places else np.empty(0, np.int64)
    codes, names = records.codes("flow")
    columns = {name: records.values(name, rows).astype(np.int64) for name in (*_EVERY, "retrans", "wire_bytes")
               if name != "flow"}  # fmt: skip
    columns["flow"] = codes[rows].astype(np.int64)
    for (flow, conn), (number, at) in known.items():
        is_conn = (codes[rows] == (names.index(flow) if flow in names else -1)) & (records.values("conn", rows) == conn)
        columns["flow"][is_conn], columns["conn"][is_conn] = -1 - number, at
    kept = columns["flow"] < 0
    columns = {name: column[kept] for name, column in columns.items()}
    columns["flow"] = -1 - columns["flow"]
    columns["time_ns"] = columns["time_ns"] - columns["time_ns"][:1].sum()
    return columns


def _common(a: dict[str, Ints], b: dict[str, Ints], columns: Sequence[str]) -> int:
    """Rows from the first on that are the same in these columns."""
    most = min(len(a["seq"]), len(b["seq"]))
    for name in columns:
        unlike = a[name][:most] != b[name][:most]
        most = int(unlike.argmax()) if unlike.any() else most
    return most


def _difference(a: dict[str, Ints], b: dict[str, Ints], at: int, flows: Sequence[str]) -> str:
    both = [rows if at < len(rows["seq"]) else None for rows in (a, b)]
    rows = both[0] or both[1]
    if rows is None:
        return ""
    place = f"then at {show_time(int(rows['time_ns'][at]))}, packet {at + 1} of {flows[int(rows['flow'][at])]}: "
    if both[0] is None or both[1] is None:
        return place + f"only the {'candidate' if both[0] is None else 'capture'} has it"
    unlike = [name for name in _EVERY if a[name][at] != b[name][at]]
    return place + ", ".join(f"{name} {a[name][at]} → {b[name][at]}" for name in unlike[:4])


def _sum(rows: dict[str, Ints], flow: int, reverse: bool) -> Sum:
    ours = {name: column[rows["flow"] == flow] for name, column in rows.items()}
    carries = (ours["length"] > 0) & (ours["direction"] == int(reverse))
    times = ours["time_ns"]
    if not carries.any():
        return Sum(0.0, 0, 0)
    took = int(times[carries][-1] - times[carries][0])
    bits = int(ours["wire_bytes"][carries].sum()) * 8
    end = 0
    for conn in np.unique(ours["conn"][carries]):
        own = ours["conn"] == conn
        last = int((ours["seq"] + ours["length"])[own & carries].max())
        acked = own & (ours["direction"] != int(reverse)) & (ours["ack"] >= last)
        end = max(end, int(times[acked][0] if acked.any() else times[-1]))
    return Sum(bits * 1e9 / max(took, 1), int((carries & (ours["retrans"] > 0)).sum()), end - int(times[0]))


def sums_words(sums: tuple[Sum, Sum]) -> str:
    """Capture → candidate."""
    a, b = sums
    return (
        f"sent at {show_rate(a.sent_bps)} → {show_rate(b.sent_bps)}, "
        f"retransmissions {a.retransmitted} → {b.retransmitted}, "
        f"completion {show_time(a.completion_ns)} → {show_time(b.completion_ns)}"
    )
