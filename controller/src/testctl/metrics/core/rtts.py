# SPDX-License-Identifier: Apache-2.0
"""Round-trip samples at the sender: data packet to the first ACK that covers it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testctl.metrics.core.matching import wire
from testctl.metrics.core.memo import once
from testctl.metrics.core.view import CONN_BITS, FlowView
from testctl.records.schema import Ints


class Samples(NamedTuple):
    """In order of departure: when the ACK came, the round trip, the connection."""

    time_ns: Ints
    rtt_ns: Ints
    conn: Ints


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
        return Samples(none, none, none)
    flow.acks_in.release()
    at = np.searchsorted(highest, departures.end)
    conn = departures.start >> CONN_BITS
    good = (at < len(highest)) & departures.once
    np.minimum(at, len(highest) - 1, out=at)
    good &= (highest[at] + 1) >> CONN_BITS == conn
    conn, position = conn[good], position[at[good]]
    del at
    left = sent["time_ns"][departures.row[good]]
    back = flow.acks_in["time_ns"][position]
    keep = back >= left
    again = sent["retrans"]
    if again.any():
        when = (sent["conn"][again].astype(np.int64), sent["time_ns"][again])
        keep &= _count_before(when, conn, back) == _count_before(when, conn, left)
    if not keep.all():
        back, left, conn = back[keep], left[keep], conn[keep]
    return Samples(back, back - left, conn)


@once
def ack_line(flow: FlowView) -> tuple[Ints, Ints]:
    """(highest number acknowledged so far on the flow's axis, position in acks_in), by connection and time."""
    acks = flow.acks_in
    conn = acks["conn"]
    order = np.argsort(conn, kind="stable") if len(conn) and conn.min() != conn.max() else np.arange(len(conn))
    return np.maximum.accumulate(acks.acked[order]), order


def _count_before(events: tuple[Ints, Ints], conn: Ints, time_ns: Ints) -> Ints:
    """How many events of the same connection come up to each time (a time is below 2^47 ns here)."""
    line = np.sort((events[0] << 47) + events[1])
    return np.asarray(np.searchsorted(line, (conn << 47) + time_ns, side="right"))
