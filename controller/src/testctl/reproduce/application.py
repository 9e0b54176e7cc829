# SPDX-License-Identifier: Apache-2.0
"""What the application of a connection did, by the packets of its sender: when it wrote how much, and when it closed.

A pause is seen where everything sent was acknowledged, or several ACKs were answered with nothing, and data followed
that no packet had caused: TCP would have sent it at once.  A pause while data was unsent leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from testctl.records import Records
from testctl.records.schema import ACK, FIN, RST, SYN, Array, Ints
from testctl.reproduce.port import roundest
from testctl.reproduce.wire import Wire

PAUSE_NS = 200_000
"""Silence after everything was acknowledged that is a pause of the application."""
_SILENT = 4
"""ACKs of new data that TCP answers with nothing where the application has nothing, when it repairs no loss."""
_CLOCK_NS = 5_000
"""How exact a time of the application is: a host takes some time from a write to the packet."""
MOST_WRITES = 1024


@dataclass(frozen=True)
class Application:
    """One connection.

    flow, conn  in the records; forward: whether the first of the two hosts connects
    reverse     whether the data comes from the host that did not connect
    start_ns    of the SYN, after the first of all
    writes      (ns after the start, bytes)
    close_ns    when the sender closed, after the start, if it did so later than with its last write; else None
    other_bytes of the other direction
    ended       FIN, RST or "": the capture has no end of it
    begun       whether its SYN was captured
    """

    flow: str
    conn: int
    forward: bool
    reverse: bool
    start_ns: int
    writes: tuple[tuple[int, int], ...]
    close_ns: int | None = None
    other_bytes: int = 0
    ended: str = ""
    begun: bool = True
    parallel: int = 1

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.writes)

    def like(self, other: Application) -> bool:
        """Whether both are connections of one flow that does the same on each."""
        mine, theirs = (replace(app, conn=0, start_ns=0, parallel=1) for app in (self, other))
        return mine == theirs and abs(self.start_ns - other.start_ns) < 1_000_000


def applications(records: Records, wire: Wire) -> list[Application]:
    """All connections with data, in the order of their SYNs, else of their first packets."""
    codes, names = records.codes("flow")
    where, places = records.codes("where")
    every = np.arange(len(codes))
    conns = records.values("conn", every)
    made = []
    for flow, backward in wire.flows:
        of_flow = codes == names.index(flow) if flow in names else np.zeros(len(codes), np.bool_)
        for conn in np.unique(conns[of_flow]):
            rows = np.flatnonzero(of_flow & (conns == conn))
            made.append(_application(records, wire, rows, where[rows], places, (flow, int(conn), not backward)))
    seen = [app for app in made if app.bytes or app.begun]
    first = min((app.start_ns for app in seen), default=0)
    return [replace(app, start_ns=_time(app.start_ns - first)) for app in sorted(seen, key=lambda app: app.start_ns)]


def _application(
    records: Records, wire: Wire, rows: Ints, where: Array, places: list[str], who: tuple[str, int, bool]
) -> Application:
    flow, conn, forward = who
    columns = {name: records.values(name, rows) for name in ("time_ns", "direction", "seq", "length", "ack", "flags")}
    columns["out"] = records.values("out", rows)
    data = columns["length"] > 0
    size = [int((columns["seq"] + columns["length"])[data & (columns["direction"] == way)].max(initial=0)) for way in (0, 1)]
    reverse = size[1] > size[0]
    sender = wire.hosts[0 if forward != reverse else 1]
    here = sender if sender in wire.seen else wire.seen[0]
    at = where == places.index(here)
    mine = {name: column[at] for name, column in columns.items()}
    syn = (mine["flags"] & (SYN | ACK)) == SYN
    start = int(mine["time_ns"][syn][0] if syn.any() else mine["time_ns"][0]) if at.any() else 0
    writes, close, ended = _writes(mine, int(reverse), start)
    return Application(
        flow, conn, forward, reverse, start, writes, close, size[not reverse], ended, bool(syn.any())
    )  # fmt: skip


def _writes(mine: dict[str, Array], way: int, start: int) -> tuple[tuple[tuple[int, int], ...], int | None, str]:
    """(writes, when it closed if later, how it ended) of the host whose packets these are."""
    ours, length = mine["direction"] == way, mine["length"]
    carries, fin = ours & (length > 0), (mine["flags"] & FIN) != 0
    end = mine["seq"] + length
    prompt = _prompt(mine["time_ns"], carries, ours)
    acked, acked_at, came, sent, silent, recover = 0, start, start, 0, 0, 0
    begins: list[tuple[int, int]] = []
    close: int | None = None
    ended = "RST" if ((mine["flags"] & RST) != 0).any() else ""
    columns = (mine["time_ns"], carries, ours, end, mine["ack"], fin)
    for now, is_data, is_ours, reached, ack, closes in zip(*(column.tolist() for column in columns), strict=True):
        if not is_ours:
            came = now
            silent += ack > acked
            if ack > acked:
                acked, acked_at = ack, now
            continue
        idle = acked >= sent and now - acked_at > PAUSE_NS
        if is_data and reached > sent:
            if not begins or (now - came > prompt and (idle or (silent >= _SILENT and acked >= recover))):
                begins.append((now, sent))
            sent = reached
        elif is_data:
            recover = sent
        if is_data:
            silent = 0
        if closes and ended != "FIN":
            ended = ended or "FIN"
            if not is_data and idle and now - came > prompt:
                close = _time(now - start)
    sizes = np.diff([base for _, base in begins] + [sent]).tolist() if begins else []
    times = [_time(now - start) for now, _ in begins]
    if times and begins[0][0] - max(start, _established(mine)) <= PAUSE_NS:
        times[0] = 0
    return tuple(zip(times, sizes, strict=True)), close, ended


def _prompt(times: Ints, carries: Array, ours: Array) -> float:
    """How soon after a packet that came TCP sends: data later than this was not sent because of it.  Without end where
    most data is sent apart from ACKs, by pacing: then no pause is seen but where nothing was in flight."""
    rows = np.arange(len(times))
    before = np.maximum.accumulate(np.where(ours, -1, rows)) if len(rows) else rows
    waits = (times - times[before])[carries & (before >= 0)]
    return 2_000 + 10 * float(np.median(waits)) if len(waits) else 2_000.0


def _established(mine: dict[str, Array]) -> int:
    """When the handshake's last packet passed here."""
    done = ((mine["flags"] & (SYN | ACK)) == ACK) & (mine["direction"] == 0)
    return int(mine["time_ns"][done][0]) if done.any() else 0


def _time(ns: int) -> int:
    """The roundest time that the packet's own allows: a little before it."""
    return 0 if ns < _CLOCK_NS else roundest(ns - _CLOCK_NS, ns + _CLOCK_NS // 2)
