# SPDX-License-Identifier: Apache-2.0
"""Round-trip samples at the sender: data packet to the first ACK that covers it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testctl.metrics.core.matching import wire
from testctl.metrics.core.memo import once
from testctl.metrics.core.native import walks
from testctl.metrics.core.view import FlowView, rows_of
from testctl.records.schema import ACK, SYN, Array, Ints

_TIME_BITS = 47
"""Of a time in ns, below the connection's number."""


class Samples(NamedTuple):
    """In order of departure: when the ACK came, the round trip, the connection."""

    time_ns: Ints
    rtt_ns: Ints
    conn: Array


@once
def round_trips(flow: FlowView) -> Samples:
    """A sample per data packet on the wire, made once.

    Karn's rule (RFC 6298, 3): none for bytes that left more than once, and none for a packet
    whose connection retransmitted between it and its ACK, as the ACK then waited for the repair.
    """
    departures, sent = wire(flow), flow.sent
    highest, position = ack_line(flow)
    none = np.empty(0, np.int64)
    if not len(highest) or not len(sent):
        return Samples(none, none, none.astype(np.int16))
    flow.acks_in.release()
    again = sent["retrans"]
    repairs = np.sort((sent["conn"][again].astype(np.int64) << _TIME_BITS) + sent["time_ns"][again])
    samples = walks().round_trips(
        row=departures.row, start=departures.start, end=departures.end, once=departures.once,
        packets=len(departures.row), sent_ns=sent["time_ns"], highest=highest, position=position,
        ack_ns=flow.acks_in["time_ns"], acks=len(highest), again=repairs, agains=len(repairs),
    )  # fmt: skip
    return Samples(*samples)


def handshake(flow: FlowView, conn: int) -> list[int]:
    """[when the sender had the answer to its SYN or SYN-ACK, how long that took] in ns; [] if it was sent twice or was
    not captured: the first sample of a smoothed round trip."""
    opens = rows_of(flow.records, flow.name, flow.sender, flow.direction, out=True)
    back = rows_of(flow.records, flow.name, flow.sender, 1 - flow.direction, out=False)
    if not len(opens) or not len(back):
        return []
    syns = np.flatnonzero((opens["conn"] == conn) & (opens["flags"] & SYN > 0))
    answers = np.flatnonzero((back["conn"] == conn) & (back["flags"] & ACK > 0))
    if len(syns) != 1 or not len(answers):
        return []
    left, came = int(opens["time_ns"][syns[0]]), int(back["time_ns"][answers[0]])
    return [came, came - left] if came > left else []


@once
def ack_line(flow: FlowView) -> tuple[Ints, Ints | None]:
    """(highest number acknowledged so far on the flow's axis, position in acks_in), by connection and time.

    No positions where there is one connection: they are 0, 1, …
    """
    acks = flow.acks_in
    conn = acks["conn"]
    if not len(conn) or conn.min() == conn.max():
        return np.maximum.accumulate(acks.acked), None
    order = np.argsort(conn, kind="stable")
    return np.maximum.accumulate(acks.acked[order]), order
