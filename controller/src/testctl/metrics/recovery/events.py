# SPDX-License-Identifier: Apache-2.0
"""TCP's internals by a capture at the sender alone, in the table that a kernel's event trace has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testctl.metrics.core.view import view
from testctl.metrics.recovery.capture_gaps import unsure
from testctl.metrics.recovery.round_trips import RoundTrips
from testctl.metrics.recovery.state_machine import Walk, walk
from testctl.metrics.recovery.trace import Trace, traces
from testctl.metrics.recovery.trace_part import Part
from testctl.records import Records
from testctl.records.schema import (
    SENDER_COLUMNS,
    TCP_EVENT_NAMES,
    TCP_EVENT_SOURCES,
    TCP_EVENTS,
    Array,
    Bools,
    Ints,
    names_column,
    table_of,
)

_ACK, _SEND, _RETRANSMIT = (TCP_EVENT_NAMES.index(name) for name in ("ack", "send", "retransmit"))

_SYN = 1
"""The kernel counts the SYN among what was delivered."""


def tcp_events(records: Records, flow: str) -> pa.Table:
    """Every ACK and transmission of a flow (schema TCP_EVENTS, source capture), in order of the capture.

    Where the capture can't be trusted to be whole (it starts mid-connection, or has a gap) pipe, cwnd, state
    and delivered are -1 until all that was missed is acknowledged; delivered for good where it starts
    mid-connection.  A recovery or a loss state begins with its first retransmission: what the sender only
    thought can't be captured.  Without a capture of the sender the table is empty.
    """
    walks = [walk(trace, pipes=True) for trace in traces(view(records, flow))]
    if not walks:
        return TCP_EVENTS.empty_table()
    parts = [_events(walked) for walked in walks]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(columns.pop("row"), kind="stable")
    count = len(order)
    named = {name: column[order] for name, column in columns.items()} | {
        "where": names_column(np.zeros(count, np.int16), [view(records, flow).sender]),
        "flow": names_column(np.zeros(count, np.int16), [flow]),
        "event": names_column(columns["event"][order], list(TCP_EVENT_NAMES)),
        "source": names_column(np.full(count, TCP_EVENT_SOURCES.index("capture")), list(TCP_EVENT_SOURCES)),
    }
    return table_of(TCP_EVENTS, named)


def _events(walked: Walk) -> dict[str, Array]:
    trace, count = walked.trace, len(walked.trace)
    whole = trace.part(0, count)
    known = np.ones(count, np.bool_)
    for stretch in unsure(trace):
        known[stretch.first : stretch.last + 1] = False
    sent = np.where(whole.again, _RETRANSMIT, _SEND)
    in_flight = (trace.fin >= 0) & (whole.nxt > trace.fin) & (whole.una <= trace.fin)
    pipe = _packets(walked.pipe(0, count), in_flight, trace)
    delivered = _SYN + _packets(walked.delivered(0, count), (trace.fin >= 0) & (whole.una > trace.fin), trace)
    if not trace.from_start:
        delivered = np.full(count, -1)
    return {
        "row": whole.row,
        "time_ns": whole.time_ns,
        "conn": np.full(count, trace.conn),
        "event": np.where(whole.is_ack, _ACK, sent),
        "snd_una": whole.una,
        "snd_nxt": whole.nxt,
        "cwnd": np.where(known & ~whole.is_ack, pipe, -1),
        "ssthresh": np.full(count, -1),
        "pipe": np.where(known, pipe, -1),
        "prior_pipe": np.concatenate([[-1], np.where(known, pipe, -1)])[:count],
        "srtt_us": smoothed_rtt_us(trace, whole),
        "state": np.where(known, walked.state(0, count), -1),
        "delivered": np.where(known, delivered, -1),
        **dict.fromkeys(SENDER_COLUMNS, np.full(count, -1)),
    }


def _packets(amount: Ints, with_fin: Bools, trace: Trace) -> Ints:
    """Bytes as packets, rounded up.  A FIN takes one number, and a packet only where it left without data."""
    fin = (with_fin & (amount > 0)).astype(np.int64)
    return np.asarray(-(-(amount - fin) // max(trace.mss, 1)) + fin * trace.fin_alone)


def smoothed_rtt_us(trace: Trace, part: Part) -> Ints:
    """SRTT after each event of a part that begins with the first (RFC 6298, section 2), µs; -1 before the first sample.

    A sample is the round trip of the oldest packet that an ACK acknowledged, by Karn's rule: not of
    retransmitted ones.
    """
    round_trips = RoundTrips(trace.flow, trace.conn)
    time_ns, srtts = round_trips.by_ack[0], np.array(round_trips.srtts_ns())
    smoothed = np.full(len(part), -1, np.int64)
    if not len(time_ns):
        return smoothed
    acks = np.flatnonzero(part.is_ack)
    at = np.searchsorted(time_ns, part.time_ns[acks], side="right") - 1
    there = at >= 0
    smoothed[acks[there]] = np.round(srtts[at[there]] / 1e3).astype(np.int64)
    held = np.maximum.accumulate(np.where(smoothed >= 0, np.arange(len(part)), -1))
    return np.where(held >= 0, smoothed[np.maximum(held, 0)], -1)
