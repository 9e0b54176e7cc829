# SPDX-License-Identifier: Apache-2.0
"""Round-trip samples at the sender: data packet to the first ACK that covers it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testctl.metrics.core.matching import Wire, wire
from testctl.metrics.core.memo import once
from testctl.metrics.core.native import if_compiled
from testctl.metrics.core.view import CONN_BITS, FlowView, rows_of
from testctl.records.schema import ACK, SYN, Array, Ints
from testctl.records.search import search

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
    times = (sent["time_ns"], flow.acks_in["time_ns"])
    walks = if_compiled()
    if walks is None:
        return _samples(departures, times, (highest, position), repairs)
    sent_ns, ack_ns = times
    found = walks.round_trips(
        row=departures.row, start=departures.start, end=departures.end, once=departures.once,
        packets=len(departures.row), sent_ns=sent_ns, highest=highest, position=position, ack_ns=ack_ns,
        acks=len(highest), again=repairs, agains=len(repairs),
    )  # fmt: skip
    return Samples(*found)


def _samples(departures: Wire, times: tuple[Ints, Ints], acks: tuple[Ints, Ints | None], repairs: Ints) -> Samples:
    """By numpy.  times: of departures and of ACKs; acks: ack_line(); repairs: of retransmissions, ascending."""
    (sent_ns, ack_ns), (highest, position) = times, acks
    at = search(highest, departures.end)
    conn = departures.start >> CONN_BITS
    good = (at < len(highest)) & departures.once
    np.minimum(at, len(highest) - 1, out=at)
    good &= (highest[at] + 1) >> CONN_BITS == conn
    conn, position = conn[good], at[good] if position is None else position[at[good]]
    left, back = sent_ns[departures.row[good]], ack_ns[position]
    since, until = (search(repairs, (conn << _TIME_BITS) + time_ns, "right") for time_ns in (left, back))
    keep = (back >= left) & (since == until)
    return Samples(back[keep], back[keep] - left[keep], conn[keep].astype(np.int16))


def handshake(flow: FlowView, conn: int) -> list[int]:
    """[when the sender had the answer to its SYN or SYN-ACK, how long that took] in ns; [] if it was sent twice or was
    not captured: the first sample of a smoothed round trip."""
    opens = rows_of(flow.records, flow.name, flow.sender, flow.direction, out=True)
    back = rows_of(flow.records, flow.name, flow.sender, 1 - flow.direction, out=False)
    if not len(opens) or not len(back):
        return []
    mine = np.flatnonzero((opens["conn"] == conn) & (opens["flags"] & SYN > 0))
    answers = np.flatnonzero((back["conn"] == conn) & (back["flags"] & ACK > 0))
    if len(mine) != 1 or not len(answers):
        return []
    left, came = int(opens["time_ns"][mine[0]]), int(back["time_ns"][answers[0]])
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
