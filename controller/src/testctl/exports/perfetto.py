# SPDX-License-Identifier: Apache-2.0
"""A point as a trace of Perfetto: a group of tracks for each connection, and one for what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
from testctl_agent.spec.errors import PlanError

from testctl.core.words import counted
from testctl.curves import Lane, Line, curves, figures, lanes, lines_of
from testctl.curves.core.thin import envelope
from testctl.exports import protobuf
from testctl.exports.internals import Internals
from testctl.exports.marks import Mark, marks
from testctl.metrics.core.passages import passages
from testctl.metrics.core.view import Rows, view
from testctl.records import Records
from testctl.records.schema import FATES, TCP_STATES, Array, Ints
from testctl.results import RunPoint

MOST_SAMPLES = 100_000
"""Samples of a track of numbers, at most, and events of any other: of more, those that draw the same picture."""
MOST_CONNECTIONS = 100

_UNITS: dict[str, int | str] = {
    "size": protobuf.BYTES, "time": protobuf.NS, "count": protobuf.COUNT, "share": "ppm"
}  # fmt: skip
"""The unit of a track, by CurveSpec.kind."""


_Slice = tuple[int, int, str, Mapping[str, int | str]]
"""start and end in ns (equal: an instant), name, notes"""


@dataclass
class _Tracks:
    """Writes tracks and their events; begin_ns: the time that is 0 in the trace; of: whose tracks follow."""

    file: IO[bytes]
    begin_ns: int
    notes: list[str]
    of: str = ""
    tracks: int = 0
    events: int = 0

    def track(self, name: str, parent: int = 0, unit: int | str | None = None) -> int:
        self.tracks += 1
        self.file.write(protobuf.descriptor(self.tracks, name, parent, unit))
        return self.tracks

    def numbers(self, line: Line, parent: int, unit: int | str) -> None:
        """A track of numbers, without those that repeat the one before; none if there is no number."""
        time_ns, value = _changes(line.time_ns, line.value)
        if not len(time_ns):
            return
        kept = envelope(time_ns, value, MOST_SAMPLES)
        self.events += len(kept)
        if len(kept) < len(time_ns):
            self.notes.append(
                f"{self.of}{line.name}: {len(kept)} of {len(time_ns)} samples, which draw the same picture"
            )
        times = np.maximum(time_ns[kept] - self.begin_ns, 0)  # a bin begins before its first packet
        for part in protobuf.counters(self.track(line.name, parent, unit), times, value[kept]):
            self.file.write(part)

    def slices(self, name: str, parent: int, slices: Sequence[_Slice]) -> None:
        """A track of slices that do not overlap; none if there is none."""
        if not slices:
            return
        track = self.track(name, parent)
        self.events += min(len(slices), MOST_SAMPLES)
        if len(slices) > MOST_SAMPLES:
            self.notes.append(f"{self.of}{name}: the first {MOST_SAMPLES} of {len(slices)}")
        for since, until, text, notes in slices[:MOST_SAMPLES]:
            start, end = (max(at - self.begin_ns, 0) for at in (since, until))
            kind = protobuf.BEGIN if end > start else protobuf.INSTANT
            self.file.write(protobuf.event(track, kind, start, text, notes))
            if end > start:
                self.file.write(protobuf.event(track, protobuf.END, end))


def write_perfetto(
    point: RunPoint, records: Records, file: IO[bytes], flow: str | None = None
) -> tuple[str, list[str]]:
    """Write a trace; returns (its size in words, which limits it met).

    flow: only this one's connections.  Raises PlanError without any packet.
    """
    of_flow = [lane for lane in lanes(records) if flow in (None, lane[0])]
    if not of_flow:
        raise PlanError(f"{point.path}: want packets of {flow or 'a flow'}; there is none")
    tracks = _Tracks(file, min(int(records.values("time_ns", np.zeros(1, np.int64))[0]), 0), [])
    if len(of_flow) > MOST_CONNECTIONS:
        tracks.notes.append(f"the {MOST_CONNECTIONS} connections with most payload of {len(of_flow)}")
    drawn = [name for name in figures(records) if curves()[name].spec.kind in _UNITS]
    drawn = [name for name in drawn if curves()[name].spec.shape != "packets"]
    of = marks(point, records)
    for lane in of_flow[:MOST_CONNECTIONS]:
        _connection(
            tracks, of[lane], records, lane, [name for name in drawn if curves()[name].spec.each == "connection"]
        )
    shared, tracks.of = 0, ""
    for name in (name for name in drawn if curves()[name].spec.each == "flow"):
        spec = curves()[name].spec
        for line in lines_of(records, name, None):
            shared = shared or tracks.track("network and flows")
            tracks.numbers(_named(line, f"{spec.title}: {line.name}"), shared, _UNITS[spec.kind])
    connections = counted(len(of_flow[:MOST_CONNECTIONS]), "connection")
    return f"{connections}, {counted(tracks.tracks, 'track')}, {counted(tracks.events, 'event')}", tracks.notes


def _named(line: Line, name: str) -> Line:
    return Line(name, line.time_ns, line.value)


def _connection(tracks: _Tracks, of_lane: Sequence[Mark], records: Records, lane: Lane, drawn: Sequence[str]) -> None:
    """The group of a connection."""
    flow, conn = view(records, lane[0]), lane[1]
    name = f"{flow.name}/{conn}"
    tracks.of = f"{name} "
    group = tracks.track(f"{name} {flow.sender} → {flow.receiver}")
    ends = [rows["time_ns"] for end in (flow.out, flow.acks_in, flow.into, flow.acks_out)
            if len(rows := end.of_conn(conn))]  # fmt: skip
    if ends:
        lasts = min(int(times[0]) for times in ends), max(int(times[-1]) for times in ends)
        payload = int(flow.data.of_conn(conn)["length"].sum())
        tracks.slices("connection", group, [(*lasts, name, {"payload in bytes": payload})])
    inside = Internals.of(records, lane)
    tracks.slices(
        "state", group, [(start, end, TCP_STATES[code], {"by": inside.source}) for start, end, code in inside.states()]
    )
    by_kind: dict[str, list[_Slice]] = {}
    for mark in of_lane:
        by_kind.setdefault(mark.kind, []).append((mark.start_ns, mark.end_ns, mark.name, mark.notes))
    for kind, slices in by_kind.items():
        tracks.slices(kind, group, slices)
    sent = flow.sent.of_conn(conn)
    tracks.slices("sent again", group, _instants(sent.where(sent["retrans"]) if len(sent) else sent))
    for passage in (*passages(flow), *passages(flow, back=True)):
        rows = passage.rows.of_conn(conn)
        tracks.slices(f"what {passage.port} did", group, _instants(rows.where(rows["fate"] > 0) if len(rows) else rows))
    known = inside.pipe >= 0
    tracks.numbers(Line("in flight", inside.time_ns[known], inside.pipe[known]), group, protobuf.COUNT)
    for name in drawn:
        spec = curves()[name].spec
        for line in lines_of(records, name, lane):
            tracks.numbers(_named(line, f"{spec.title}: {line.name}"), group, _UNITS[spec.kind])


def _instants(rows: Rows) -> list[_Slice]:
    """Packets by the switch's action, or their numbers where there is none."""
    columns = [rows[name].tolist() for name in ("time_ns", "fate", "seq", "length")] if len(rows) else [[]] * 4
    return [
        (time, time, FATES[fate] if fate else f"{seq}..{seq + length}", {"seq": seq, "length": length, "row": row})
        for time, fate, seq, length, row in zip(*columns, rows.index.tolist(), strict=True)
    ]


def _changes(time_ns: Ints, value: Array) -> tuple[Ints, Array]:
    """Of the samples those with another value than the one before, and the last."""
    kept = np.flatnonzero(np.append(np.diff(value, prepend=np.nan)[:-1] != 0, True)[: len(value)])
    return time_ns[kept], value[kept]
