# SPDX-License-Identifier: Apache-2.0
"""A connection as its sender saw it: departures of data and arrivals of ACKs in one order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testctl.metrics.core.memo import once
from testctl.metrics.core.view import FlowView
from testctl.records.schema import FIN, SACK_EDGES, SYN, Array, Bools, Ints


@dataclass(frozen=True)
class Trace:
    """Events of one connection at its sender, in the order of the capture; each array has one entry an event.

    row: of the packets table; is_ack: an ACK that came, else data (or a FIN) that left;
    seq, end: of data, the byte behind its last (and behind a FIN); payload, segs: bytes and packets on
    the wire of data, 0 of ACKs; again: data that had left before; number: of an ACK;
    una, nxt: snd.una and snd.nxt after the event;
    plain: of an ACK, it carried no payload; at: of an ACK, its entry in `blocks`, (ACKs, 8) SACK edges
    (start, end, start, …; -1 none); top: the highest byte that an ACK acknowledged or SACKed.
    fin: the number that the FIN takes, -1 without one; fin_alone: it left in a packet without data;
    from_start: the SYN was captured; start: snd.una before the first event; sack: whether any ACK had
    SACK blocks; mss: the largest packet's payload.
    Only a capture at the sender shows this order.
    """

    flow: FlowView
    conn: int
    row: Ints
    time_ns: Ints
    is_ack: Bools
    seq: Ints
    end: Ints
    payload: Ints
    segs: Ints
    again: Bools
    number: Ints
    una: Ints
    nxt: Ints
    plain: Bools
    at: Ints
    blocks: Ints
    top: Ints
    from_start: bool
    start: int
    fin: int
    fin_alone: bool
    sack: bool
    mss: int

    def __len__(self) -> int:
        return len(self.row)

    def edges(self, event: int) -> list[tuple[int, int]]:
        """The SACK blocks of an ACK."""
        found = self.blocks[self.at[event]].tolist()
        return [(low, high) for low, high in zip(found[::2], found[1::2], strict=True) if high > low >= 0]


def traces(flow: FlowView, *, repaired: bool = False) -> list[Trace]:
    """The connections of a flow that sent data, as far as they were captured at the sender, each made once.

    repaired: only those that retransmitted.
    """
    conns = flow.sent["conn"][flow.sent["retrans"]] if repaired else flow.sent["conn"]
    return [_trace(flow, conn) for conn in np.unique(conns).tolist()]


@once
def _trace(flow: FlowView, conn: int) -> Trace:
    out, acks = flow.out.of_conn(conn), flow.acks_in.of_conn(conn)
    from_start = bool((out["flags"] & SYN > 0).any())
    data = out.where((out["length"] > 0) | (out["flags"] & (FIN | SYN) == FIN))
    fin = (data["flags"] & FIN > 0).astype(np.int64)
    count, answers = len(data), len(acks)
    order = np.argsort(np.concatenate([data.index, acks.index]), kind="stable")
    blocks = np.stack([acks[name] for name in SACK_EDGES], axis=1) if answers else np.empty((0, 8), np.int64)

    def merged(of_data: Array | int, of_acks: Array | int) -> Ints:
        left, right = (np.broadcast_to(v, n) for v, n in ((of_data, count), (of_acks, answers)))
        return np.concatenate([left, right]).astype(np.int64)[order]

    is_ack = merged(0, 1).astype(np.bool_)
    end, number = merged(data["seq"] + data["length"] + fin, 0), merged(0, acks["ack"])
    start = 0 if from_start or not answers else int(acks["ack"][0])
    least = np.iinfo(np.int64).min
    una = np.maximum(np.maximum.accumulate(np.where(is_ack, number, least)), start)
    nxt = np.maximum(np.maximum.accumulate(np.where(is_ack, least, end)), start)
    tops = np.maximum(acks["ack"], blocks[:, 1::2].max(axis=1)) if answers else np.empty(0, np.int64)
    segs = data["segs"].astype(np.int64)
    return Trace(
        flow=flow,
        conn=conn,
        row=merged(data.index, acks.index),
        time_ns=merged(data["time_ns"], acks["time_ns"]),
        is_ack=is_ack,
        seq=merged(data["seq"], 0),
        end=end,
        payload=merged(data["length"], 0),
        segs=merged(np.where(data["length"] > 0, segs, 0), 0),
        again=merged(data["retrans"], 0).astype(np.bool_),
        number=number,
        una=una,
        nxt=nxt,
        plain=merged(0, acks["length"] == 0).astype(np.bool_),
        at=merged(0, np.arange(answers)),
        blocks=blocks,
        top=merged(0, tops),
        from_start=from_start,
        start=start,
        fin=int((data["seq"] + data["length"])[fin > 0].max(initial=-1)),
        fin_alone=bool((fin > 0)[data["length"] == 0].any()),
        sack=bool((blocks >= 0).any()),
        mss=int((-(-data["length"] // segs)).max()) if count else 1,
    )
