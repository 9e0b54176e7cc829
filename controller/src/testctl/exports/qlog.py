# SPDX-License-Identifier: Apache-2.0
"""The connections of a point as qlog 0.3, the version that qvis reads, with TCP in QUIC's events (docs/exports.md).

Source: draft-ietf-quic-qlog-main-schema-02 and draft-ietf-quic-qlog-quic-events-01.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
from testctl_agent.spec.errors import PlanError

from testctl.core.words import counted
from testctl.curves import Lane, lanes, lines_of
from testctl.exports.internals import Internals
from testctl.exports.marks import Mark, marks
from testctl.metrics.core.view import MANY, FlowView, view
from testctl.records import Records
from testctl.records.schema import ACK, CE, CWR, ECE, FIN, PSH, RST, SYN, TCP_STATES, URG, Array, Ints
from testctl.results import RunPoint
from testctl.rules.core.trace import Trace, trace_of

_FLAGS = {FIN: "F", SYN: "S", RST: "R", PSH: "P", ACK: ".", URG: "U", ECE: "E", CWR: "W"}
_LETTERS = ["".join(letter for bit, letter in _FLAGS.items() if flags & bit) for flags in range(256)]
_ECN = ("", "ECT(1)", "ECT(0)", "CE")
assert _ECN[CE] == "CE"
_AT_ONCE = 1 << 16
_COLUMNS = ("time_ns", "out", "seq", "ack", "length", "flags", "window", "wire_bytes", "ecn", "segs")

Event = tuple[int, str]
"""time_ns, and the event without its time, as JSON"""


def write_qlog(point: RunPoint, records: Records, file: IO[bytes], flow: str | None = None) -> tuple[str, list[str]]:
    """Write a trace for every connection that a host captured; returns (its size in words, notes).

    flow: only this one's.  Raises PlanError where no host captured one, or more packets than memory may hold.
    """
    of_flow = [lane for lane in lanes(records) if flow in (None, lane[0])]
    of_flow.sort(key=lambda lane: records.flows.index(lane[0]))
    head = {"qlog_version": "0.3", "qlog_format": "JSON", "title": f"testctl, point {point.id}",
            "description": "TCP in the events of QUIC"}  # fmt: skip
    file.write(json.dumps(head, ensure_ascii=False)[:-1].encode() + b', "traces": [')
    written = events = 0
    traces: dict[str, Trace | None] = {}
    of = marks(point, records)
    for lane in of_flow:
        if lane[0] not in traces:
            traces = {lane[0]: _trace(view(records, lane[0]))}  # of one flow at a time
        trace = traces[lane[0]]
        if trace is None or not len(rows := np.flatnonzero(trace["conn"] == lane[1])):
            continue
        file.write((",\n" if written else "\n").encode() + _opening(records, trace, lane))
        written += 1
        for number, (time_ns, text) in enumerate(_events(of[lane], records, trace, lane, rows)):
            events += 1
            file.write(f'{"," if number else ""}\n{{"time": {_ms(time_ns)}, {text}}}'.encode())
        file.write(b"]}")
    file.write(b"]}\n")
    if not written:
        raise PlanError(
            f"{point.path}: want packets that a host captured; no connection{f' of {flow}' if flow else ''} has any"
        )
    missing = len(of_flow) - written
    notes = [f"without {counted(missing, 'connection')} that no host captured"] if missing else []
    return f"{counted(written, 'connection')}, {counted(events, 'event')}", notes


def _trace(flow: FlowView) -> Trace | None:
    """A flow's packets at its sender, or at its receiver where the sender was not captured."""
    host = next((host for host, rows in ((flow.sender, flow.out), (flow.receiver, flow.into)) if len(rows)), None)
    if host is None:
        return None
    trace = trace_of(flow.records, flow.name, flow.requested.ends.index(host))
    if len(trace) > MANY:
        raise PlanError(f"flow {flow.name}: want at most {MANY} packets for a qlog; {host} captured {len(trace)}")
    return trace


def _opening(records: Records, trace: Trace, lane: Lane) -> bytes:
    """A trace up to its events."""
    other = view(records, lane[0]).requested.ends[1 - trace.direction]
    kind = "server" if trace.direction else "client"
    common = {"protocol_type": ["TCP"], "time_format": "relative", "reference_time": records.outcome.t0_ns / 1e6}
    opening = {"title": f"{lane[0]}/{lane[1]}: {trace.host} ⇄ {other}",
               "vantage_point": {"name": trace.host, "type": kind}, "common_fields": common}  # fmt: skip
    return json.dumps(opening, ensure_ascii=False)[:-1].encode() + b', "events": ['


def _events(of_lane: Sequence[Mark], records: Records, trace: Trace, lane: Lane, rows: Ints) -> Iterator[Event]:
    """All events of a connection in order of time."""
    sources = [_packets(trace, rows), _marks(of_lane)]
    if trace.host == view(records, lane[0]).sender:
        inside = Internals.of(records, lane)
        sources += [_metrics(records, lane, inside), _states(inside)]
    return heapq.merge(*sources, key=lambda event: event[0])


def _packets(trace: Trace, rows: Ints) -> Iterator[Event]:
    """packet_sent, packet_received and, before what was sent again, packet_lost.

    rows: of the connection, consecutive.  A packet's number is its place in its direction, from 0.
    """
    low, out = int(rows[0]), trace.out[rows]
    number = np.where(out, np.cumsum(out), np.cumsum(~out)) - 1
    acked, again = (ends[rows] - low for ends in trace.board.ends)
    received = ~out & (trace.end[rows] > trace["seq"][rows])
    answer = trace.reached(trace["ack"], trace.out & trace.has(ACK), trace.end)[rows] - low
    acked = np.where(received, np.where(answer > np.arange(len(rows)), answer, len(rows)), acked)
    ranges = _ranges(number, acked, len(rows))
    lost = np.flatnonzero((again < len(rows)) & (acked >= len(rows)) & out)
    losses = list(zip(again[lost].tolist(), number[lost].tolist(), strict=True))
    losses.sort(reverse=True)
    timer, evidence = trace.board.by_timer[rows], trace.board.evidence[rows]
    next_range = next(ranges, None)
    for begin in range(0, len(rows), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        columns = [column[part].tolist() for column in (number, timer, evidence)]
        columns += [trace[name][rows[part]].tolist() for name in _COLUMNS]
        for at, (count, by_timer, by_acks, time_ns, left, *packet) in enumerate(zip(*columns, strict=True), begin):
            while losses and losses[-1][0] == at:
                why = ', "trigger": "pto_expired"' if by_timer else ""
                header = f'{{"packet_type": "1RTT", "packet_number": {losses.pop()[1]}}}'
                yield time_ns, f'"name": "recovery:packet_lost", "data": {{"header": {header}{why}}}'
            blocks = []
            while next_range is not None and next_range[0] == at:
                blocks.append(f"[{next_range[1]}, {next_range[2]}]")
                next_range = next(ranges, None)
            why = "retransmit_timeout" if by_timer else "retransmit_reordered" if by_acks else ""
            yield time_ns, _packet(left, count, ", ".join(blocks), why, *packet)


def _packet(out: bool, number: int, acked: str, why: str, seq: int, ack: int, length: int, flags: int, window: int,
            wire_bytes: int, ecn: int, segs: int) -> str:  # fmt: skip
    """A packet without its time; `tcp` is not in the schema, which lets events have other fields."""
    frames = []
    offset = seq + (1 if flags & SYN else 0)
    if length and offset >= 0:
        fin = ', "fin": true' if flags & FIN else ""
        frames.append(f'{{"frame_type": "stream", "stream_id": 0, "offset": {offset}, "length": {length}{fin}}}')
    if flags & ACK:
        if acked:
            frames.append(f'{{"frame_type": "ack", "acked_ranges": [{acked}]}}')
        frames.append(f'{{"frame_type": "max_data", "maximum": {max(ack + window, 0)}}}')
    shown = f'"frames": [{", ".join(frames)}], ' if frames else ""
    reason = f'"trigger": "{why}", ' if why else ""
    tcp = f'"seq": {seq}, "ack": {ack}, "flags": "{_LETTERS[flags]}", "window": {window}'
    tcp += (f', "ecn": "{_ECN[ecn]}"' if ecn else "") + (f', "segments": {segs}' if segs > 1 else "")
    return (
        f'"name": "transport:packet_{"sent" if out else "received"}", "data": {{'
        f'"header": {{"packet_type": "1RTT", "packet_number": {number}}}, '
        f'"raw": {{"length": {wire_bytes}, "payload_length": {length}}}, '
        f'{shown}{reason}"tcp": {{{tcp}}}}}'
    )


def _ranges(number: Ints, acked: Ints, none: int) -> Iterator[tuple[int, int, int]]:
    """(row of an ACK, first and last number) of packets that it was the first to acknowledge, by row and number."""
    packet = np.flatnonzero(acked < none)
    packet = packet[np.lexsort((number[packet], acked[packet]))]
    by, numbers = acked[packet], number[packet]
    begins = np.flatnonzero((np.diff(by, prepend=-1) != 0) | (np.diff(numbers, prepend=-2) != 1))
    ends = np.append(begins[1:], len(packet)) - 1
    yield from zip(by[begins].tolist(), numbers[begins].tolist(), numbers[ends].tolist(), strict=True)


def _metrics(records: Records, lane: Lane, inside: Internals) -> Iterator[Event]:
    """recovery:metrics_updated with what has changed, bytes and ms; the windows as the figure of them has them."""
    mss = view(records, lane[0]).data.of_conn(lane[1]).largest
    lines = {line.name: line for line in lines_of(records, "cwnd", lane)}
    window, threshold = lines["window"], lines["slow-start threshold"]
    series: list[tuple[str, Ints, Array]] = [
        ("congestion_window", window.time_ns, window.value * mss),
        ("ssthresh", threshold.time_ns, threshold.value * mss),
        ("bytes_in_flight", inside.time_ns, inside.pipe * mss),
        ("smoothed_rtt", inside.time_ns, inside.srtt_us / 1e3),
    ]
    changes = heapq.merge(*(_changes(*each) for each in series), key=lambda event: event[0])
    now, texts = 0, list[str]()
    for time_ns, text in changes:
        if texts and time_ns != now:
            yield now, f'"name": "recovery:metrics_updated", "data": {{{", ".join(texts)}}}'
            texts = []
        now = time_ns
        texts.append(text)
    if texts:
        yield now, f'"name": "recovery:metrics_updated", "data": {{{", ".join(texts)}}}'


def _changes(name: str, time_ns: Ints, value: Array) -> Iterator[Event]:
    """The known values that differ from the one before; of equal times the last."""
    known = np.flatnonzero(value >= 0)
    time_ns, value = time_ns[known], value[known]
    last = np.flatnonzero(np.append(time_ns[1:] != time_ns[:-1], True)[: len(time_ns)])
    time_ns, value = time_ns[last], value[last]
    new = np.flatnonzero(np.diff(value, prepend=-1) != 0)
    for when, number in zip(time_ns[new].tolist(), value[new].tolist(), strict=True):
        yield when, f'"{name}": {number}'


def _states(inside: Internals) -> Iterator[Event]:
    """recovery:congestion_state_updated, with Linux's names of the states."""
    before = ""
    for start, _, code in inside.states():
        old = f'"old": "{before}", ' if before else ""
        before = TCP_STATES[code]
        yield start, f'"name": "recovery:congestion_state_updated", "data": {{{old}"new": "{before}"}}'


def _marks(of_lane: Sequence[Mark]) -> Iterator[Event]:
    """generic:info for a stall, generic:warning for a rule that was violated."""
    events: list[Event] = []
    for mark in of_lane:
        kind = "info" if mark.end_ns > mark.start_ns else "warning"
        lasts = f" for {_ms(mark.end_ns - mark.start_ns)} ms" if mark.end_ns > mark.start_ns else ""
        notes = "; ".join(f"{name}: {value}" for name, value in mark.notes.items())
        data: dict[str, Any] = {"message": f"{mark.kind}: {mark.name}{lasts}; {notes}"}
        events.append((mark.start_ns, f'"name": "generic:{kind}", "data": {json.dumps(data, ensure_ascii=False)}'))
    return iter(sorted(events))


def _ms(time_ns: int) -> str:
    """ns as ms, exactly."""
    sign = "-" if time_ns < 0 else ""
    return f"{sign}{abs(time_ns) // 1_000_000}.{abs(time_ns) % 1_000_000:06}"
