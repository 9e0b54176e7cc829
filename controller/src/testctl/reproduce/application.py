# SPDX-License-Identifier: Apache-2.0
"""What the application of a connection did, by the packets of its sender: when it wrote how much, and when it closed.

A pause is seen where everything sent was acknowledged, or several ACKs were answered with nothing, and data followed
that no packet had caused: TCP would have sent it at once.  A pause while data was unsent leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from testctl.records import Records
from testctl.records.schema import ACK, FIN, RST, SYN, Array, Ints
from testctl.reproduce.port import roundest
from testctl.reproduce.wire import Wire

PAUSE_NS = 200_000
"""Silence after everything was acknowledged that is a pause of the application."""
_SILENT = 4
"""ACKs of new data that TCP answers with nothing where the application has nothing, when it repairs no loss."""
_CLOCK_NS = 20_000
"""How exact a time of the application is: a host takes some time from a write to the packet."""
_REACTS_NS = 2_500
"""How long a host takes from an ACK to what it lets TCP send, at least."""
_ROUND_NS = 10_000_000
PACED = 0.9
"""Share of the data that is sent at once, below which TCP paces."""


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
    prompt      share of the data that was sent at once when an ACK had come; None: unknown
    kept        share of what was in flight that still was after the first recovery; None: there was none
    hints       (round time, when new data was sent last before) of data that no packet caused, also without a pause
    quiet_ns    when the last new data before each write was sent, after the start; the last value is of the last write
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
    prompt: float | None = None
    kept: float | None = None
    quiet_ns: tuple[int, ...] = ()
    hints: tuple[tuple[int, int], ...] = ()

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.writes)

    def like(self, other: Application) -> bool:
        """Whether both are connections of one flow that does the same on each."""
        first, second = (
            replace(app, conn=0, start_ns=0, prompt=None, kept=None, quiet_ns=(), hints=()) for app in (self, other)
        )
        return first == second and abs(self.start_ns - other.start_ns) < 1_000_000


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
    size = [
        int((columns["seq"] + columns["length"])[data & (columns["direction"] == way)].max(initial=0)) for way in (0, 1)
    ]
    reverse = size[1] > size[0]
    sender = wire.hosts[0 if forward != reverse else 1]
    here = sender if sender in wire.seen else wire.seen[0]
    at = where == places.index(here)
    packets = {name: column[at] for name, column in columns.items()}
    syn = (packets["flags"] & (SYN | ACK)) == SYN
    start = int(packets["time_ns"][syn][0] if syn.any() else packets["time_ns"][0]) if at.any() else 0
    scan = _scan(packets, int(reverse), start)
    return Application(
        flow, conn, forward, reverse, start, scan.writes(start, _established(packets)), scan.close_ns,
        size[not reverse], scan.ended, bool(syn.any()), scan.prompt, scan.kept,
        tuple(at - start for at in (*scan.quiet, scan.last)), tuple(scan.hints),
    )  # fmt: skip


@dataclass
class _Scan:
    """What the packets of a connection at its sender show, taken one by one.

    begins  (time, bytes sent before) of data that followed a pause; quiet: when new data was sent last before it
    """

    ended: str
    prompt: float | None = None
    close_ns: int | None = None
    kept: float | None = None
    sent: int = 0
    last: int = 0
    begins: list[tuple[int, int]] = field(default_factory=list)
    quiet: list[int] = field(default_factory=list)
    hints: list[tuple[int, int]] = field(default_factory=list)

    def writes(self, start: int, established: int) -> tuple[tuple[int, int], ...]:
        """(time after the start, bytes) of each."""
        sizes = np.diff([base for _, base in self.begins] + [self.sent]).tolist() if self.begins else []
        times = [_time(now - start) for now, _ in self.begins]
        if times and self.begins[0][0] - max(start, established) <= PAUSE_NS:
            times[0] = 0
        return tuple(zip(times, sizes, strict=True))


def _scan(packets: dict[str, Array], way: int, start: int) -> _Scan:
    ours, length = packets["direction"] == way, packets["length"]
    carries, fin = ours & (length > 0), (packets["flags"] & FIN) != 0
    scan = _Scan("RST" if ((packets["flags"] & RST) != 0).any() else "")
    at_once, scan.prompt = _prompt(packets, carries, ours)
    paced = scan.prompt is not None and scan.prompt < PACED
    acked, acked_at, came, silent, recover, flight = 0, start, start, 0, 0, 0
    columns = (packets["time_ns"], carries, ours, packets["seq"] + length, packets["ack"], fin)
    for now, is_data, is_ours, reached, ack, closes in zip(*(column.tolist() for column in columns), strict=True):
        if not is_ours:
            came = now
            if ack > acked:
                acked, acked_at, silent = ack, now, silent + 1
                if flight and acked >= recover and scan.kept is None:
                    scan.kept = (scan.sent - acked) / flight
            continue
        idle = acked >= scan.sent and now - acked_at > PAUSE_NS
        if is_data and reached > scan.sent:
            paused = idle or (silent >= _SILENT and acked >= recover and not paced)
            if not scan.begins or (paused and now - came > at_once):
                scan.begins.append((now, scan.sent))
                scan.quiet.append(scan.last)
            elif now - came > at_once and acked >= recover and not paced and _time(now - start) % _ROUND_NS == 0:
                scan.hints.append((_time(now - start), scan.last - start))
            scan.sent, scan.last = reached, now
        elif is_data:
            flight, recover = flight or scan.sent - acked, scan.sent
        silent = 0 if is_data else silent
        if closes and scan.ended != "FIN":
            scan.ended = scan.ended or "FIN"
            if not is_data and idle and now - came > at_once:
                scan.close_ns = _time(now - start) or None
    return scan


def _prompt(packets: dict[str, Array], carries: Array, ours: Array) -> tuple[float, float | None]:
    """(ns, share): how soon after a packet that came TCP sends what that lets it send, and how much data is sent so.

    Data later than that was not sent because of it, but by a write or by pacing.  Packets sent while nothing is in
    flight, and with them until the next packet comes, tell nothing of pacing and are not counted.
    """
    times, rows = packets["time_ns"], np.arange(len(ours))
    before = np.maximum.accumulate(np.where(ours, -1, rows)) if len(rows) else rows
    waits = times - times[before]
    asked = carries & (before >= 0)
    if not asked.any():
        return _REACTS_NS, None
    sent = np.maximum.accumulate(np.where(carries, packets["seq"] + packets["length"], 0))
    acked = np.maximum.accumulate(np.where(ours, 0, packets["ack"]))
    idle = np.cumsum(carries & (acked >= np.concatenate([[0], sent[:-1]])))
    counted = asked & (idle == idle[before])
    at_once = min(_REACTS_NS + 10 * float(np.percentile(waits[asked], 10)), float(PAUSE_NS))
    share = float((waits[counted] <= at_once).mean()) if counted.any() else None
    if share is not None and share < PACED:  # where pacing is slow nothing is in flight between two packets
        apart = np.diff(times[carries])
        slow = apart[apart > at_once]
        at_once = max(float(PAUSE_NS), 4 * float(np.percentile(slow, 90)) if len(slow) else 0.0)
    return at_once, share


def _established(packets: dict[str, Array]) -> int:
    """When the handshake's last packet passed here."""
    done = ((packets["flags"] & (SYN | ACK)) == ACK) & (packets["direction"] == 0)
    return int(packets["time_ns"][done][0]) if done.any() else 0


def _time(ns: int) -> int:
    """The roundest time that the packet's own allows: a little before it."""
    return 0 if ns < _CLOCK_NS else roundest(ns - _CLOCK_NS, ns + _CLOCK_NS // 10)
