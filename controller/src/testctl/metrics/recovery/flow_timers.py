# SPDX-License-Identifier: Apache-2.0
"""Every departure of a flow that a timer let go, by the sender's capture: retransmissions, SYNs and new data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from testctl_agent.params.flow import command

from testctl.metrics.core.available import timers_alone
from testctl.metrics.core.memo import once
from testctl.metrics.core.view import FlowView, view
from testctl.metrics.recovery.kernel_trace import traced_columns, traced_names
from testctl.metrics.recovery.state_machine import RECOVERY
from testctl.metrics.recovery.table import flow_walks
from testctl.metrics.recovery.timers import ALMOST, FLOOR_NS, PROBE, RTO, Timers, probing, rto_max_ns, rto_min_ns
from testctl.metrics.recovery.trace import Trace, traces
from testctl.records.schema import ACK, SYN, TCP_LIMITS, Bools, Ints

UNSURE = "unsure"
"""New data at about the time of a probe: whether a timer or the application let it go is not known."""
SHUT = "shut"
"""A retransmission after a timeout into a window that the receiver took back: to the kernel it is a probe of that
window and no timeout (tcp_retransmit_timer())."""
_APPLICATION, _PACING = TCP_LIMITS.index("application"), TCP_LIMITS.index("pacing")
_EARLY = 0.5
"""Of the least time of a probe by the estimate of the round trip: from then on new data may be one."""


@dataclass(frozen=True)
class Departure:
    """row: of the packets table; by: "rto", "tlp", UNSURE or SHUT; ran_ns: how long the timer had run."""

    row: int
    by: str
    ran_ns: int


@once
def flow_timers(flow: FlowView) -> list[Departure]:
    """In order of the capture, computed once; [] without a capture of the sender.

    UNSURE are those that the kernel's count of all that the host sent does not identify either.
    """
    departures, records = _inferred(flow), flow.records
    if not any(departure.by == UNSURE for departure in departures) or not timers_alone(records, flow.sender):
        return departures
    flows = [other for other in (view(records, name) for name in records.flows) if other.sender == flow.sender]
    kinds = Counter(departure.by for other in flows for departure in _inferred(other))
    counted = records.snmp(flow.sender).get("TcpExt.TCPLossProbes", -1)
    if counted == kinds[PROBE]:
        return [departure for departure in departures if departure.by != UNSURE]
    if counted == kinds[PROBE] + kinds[UNSURE]:
        return [replace(departure, by=PROBE) if departure.by == UNSURE else departure for departure in departures]
    return departures


@once
def _inferred(flow: FlowView) -> list[Departure]:
    departures = []
    syns = flow.out.where(flow.out["flags"] & (SYN | ACK) == SYN) if len(flow.out) else flow.out
    # Only the timer sends a SYN again (a SYN-ACK has no connection yet, and no timer of one).
    for conn in np.unique(syns["conn"]):
        own = syns.of_conn(conn)
        waits = np.diff(own["time_ns"])
        departures += [Departure(int(row), RTO, int(ran)) for row, ran in zip(own.index[1:], waits, strict=True)]
    for walked in flow_walks(flow.records, flow.name):
        at_ns = flow.records.values("time_ns", np.array([timed.row for timed in walked.timed], np.int64))
        shut = _shut(flow, walked.trace.conn, at_ns)
        departures += [
            Departure(timed.row, SHUT if timed.by == RTO and closed else timed.by, timed.ran_ns)
            for timed, closed in zip(walked.timed, shut.tolist(), strict=True)
        ]
    for trace in traces(flow):
        departures += _new_data(trace)
    return sorted(departures, key=lambda timed: timed.row)


def _shut(flow: FlowView, conn: int, at_ns: Ints) -> Bools:
    """Whether the receiver's window was closed at each of these times, by the last ACK before it."""
    acks = flow.acks_in.of_conn(conn)
    if not len(acks) or not len(at_ns):
        return np.zeros(len(at_ns), np.bool_)
    last = np.searchsorted(acks["time_ns"], at_ns, side="right") - 1
    return np.asarray((last >= 0) & (acks["window"][np.maximum(last, 0)] == 0))


def _new_data(trace: Trace) -> list[Departure]:
    """New data that left with data outstanding and no ACK before it, about two round trips after all else, or when
    the timer of the first outstanding packet would have run out: a probe does not wait for longer
    (tcp_schedule_loss_probe())."""
    timers = Timers(trace)
    if not timers.probing:
        return []
    data = trace.data
    late = np.diff(data.time_ns) > FLOOR_NS
    late = np.concatenate([[True], late])  # before the first there may be ACKs
    some = np.flatnonzero(late & ~data.retrans & (data.segs == 1) & (data.length > 0))
    departures = []
    for sent, acks in zip(some.tolist(), trace.acks_before(some).tolist(), strict=True):
        if not sent + acks or trace.nxt_after(sent) <= trace.una_after(acks):
            continue
        now, before = int(data.time_ns[sent]), trace.time_before(sent, sent + acks)
        wait = timers.probe_ns(now)
        una = trace.una_after(acks)
        head = int(np.searchsorted(data.nxt, una, side="right"))
        again = data.retrans[head:sent] & (data.seq[head:sent] <= una)
        if now - int(data.time_ns[head]) >= timers.rto_ns(now) and not again.any():
            wait = float(FLOOR_NS)
        if now - before < _EARLY * wait:
            continue
        sure = greedy(trace.flow) or _beyond_window(trace, trace.end_of(sent))
        let_go = True if sure else _by_samples(trace, before, now)
        if let_go is not False:
            in_time = now - before >= wait
            departures.append(Departure(int(data.row[sent]), PROBE if let_go and in_time else UNSURE, now - before))
    return departures


def greedy(flow: FlowView) -> bool:
    """Whether the plan's application always has data waiting, so that no new data waits for it."""
    requested = flow.records.point.flow(flow.name)
    if requested is None or requested.asks or requested.generator == command.GENERATOR:
        return False
    return requested.options.get("pattern") == "greedy" and requested.options.get("rate", "none") == "none"


def _beyond_window(trace: Trace, end: int) -> bool:
    """Whether the kernel's trace shows that it sent up to `end` beyond its window, as only a probe does."""
    events = traced_columns(trace.flow.records, trace.flow.name)
    own = np.flatnonzero((events["conn"] == trace.conn) & (events["snd_nxt"] == end))
    return bool(len(own) and events["pipe"][own[0]] > events["cwnd"][own[0]])


def traced_timers(flow: FlowView) -> tuple[int, int, int]:
    """(timeouts, probes, packets of new data that were probes or the application's) by the kernel's trace.

    A probe is a retransmission outside of recovery and loss states; or new data with data in flight that no ACK let go,
    beyond the window some time after the departure before, or where the application is greedy about two round trips
    after the event before, or when the timer of the first outstanding packet would have run out.  Behind a queue of the
    host's TCP holds such data back until some has left (tcp_small_queue_check()), so that it may be either.  A FIN and
    a whole packet after all else was sent leave when the application shuts the connection or writes it.
    """
    events, names = traced_columns(flow.records, flow.name), traced_names(flow.records, flow.name)
    open_state = events["state"] < RECOVERY
    again = int((open_state & (names == "retransmit")).sum())
    fins = {trace.conn: trace.fin + 1 for trace in traces(flow) if trace.fin >= 0}
    free = flow.records.point.release_of(flow.sender) < (6, 12)  # the FIN does not wait for the window
    timeouts, late, full = 0, 0, 0
    for conn in np.unique(events["conn"]):
        own = events["conn"] == conn
        time_ns, srtt_ns = events["time_ns"][own], np.maximum(events["srtt_us"][own], 0) * 1000
        ran_out = time_ns[names[own] == "timeout"]
        timeouts += len(ran_out) - int(_shut(flow, int(conn), ran_out).sum())
        if not probing(flow):
            continue
        quiet = np.diff(time_ns, prepend=time_ns[0])
        before = np.concatenate([[0], srtt_ns[:-1]])
        sent = names[own] == "send"
        limit = np.append(0, events["limited_by"][own][:-1])
        nxt, packets = events["snd_nxt"][own], (events["pipe"] - events["prior_pipe"])[own]
        size = np.where(sent, np.diff(nxt, prepend=events["snd_una"][own][0]) / np.maximum(packets, 1), 0)
        fin, beyond = nxt == fins.get(conn, -1), (events["pipe"] > events["cwnd"])[own]
        written = (limit == _APPLICATION) & (size >= size[~fin].max(initial=0)) | fin & (free | ~beyond)
        new = sent & open_state[own] & (events["prior_pipe"][own] > 0) & (limit != _PACING) & ~written
        first = np.searchsorted(events["snd_nxt"][own][sent], events["snd_una"][own], side="right")
        left_ns = np.append(time_ns[sent], time_ns[-1])[first]
        rto_ns = np.minimum(before + ALMOST * rto_min_ns(flow), ALMOST * rto_max_ns(flow))
        due = (quiet >= 2 * ALMOST * before) | (time_ns - left_ns >= rto_ns)
        fin_alone = free & (np.diff(nxt, prepend=nxt[0]) == 1)
        departed = np.where(sent | (names[own] == "retransmit"), time_ns, 0)
        since = time_ns - np.append(0, np.maximum.accumulate(departed)[:-1])
        waited = new & ((quiet > FLOOR_NS) & due | (since > FLOOR_NS) & beyond & ~fin_alone)
        late += int(waited.sum())
        full += int((waited & beyond).sum())
    sure = late if greedy(flow) and not flow.records.point.host_queue(flow.sender) else full
    return timeouts, again + sure, late - sure


def _by_samples(trace: Trace, low: int, high: int) -> bool | None:
    """Whether the application had data waiting that TCP would have sent, by a sample between two times; None without
    one, and where less than a segment waited, which may be for an ACK (Nagle).
    """
    if not (info := trace.info):
        return None
    last = int(np.searchsorted(info["time_ns"], high)) - 1
    known = last >= 0 and info["time_ns"][last] > low and info["notsent_bytes"][last] >= 0
    if not known:
        return None
    waits, nodelay = int(info["notsent_bytes"][last]), bool(trace.flow.requested.options.get("nodelay"))
    return None if not nodelay and 0 < waits < info["snd_mss"][last] else waits > 0
