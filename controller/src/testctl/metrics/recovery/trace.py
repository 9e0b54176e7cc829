# SPDX-License-Identifier: Apache-2.0
"""A connection as its sender saw it: departures of data and arrivals of ACKs in one order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from testctl.metrics.core.memo import once
from testctl.metrics.core.native import if_compiled
from testctl.metrics.core.view import FlowView, Rows
from testctl.records.schema import FIN, SACK_EDGES, SYN, Array, Bools, Ints
from testctl.records.search import search


@dataclass(frozen=True)
class Trace:
    """Events of one connection at its sender, in the order of the capture; each array has one entry an event.

    row: of the packets table; is_ack: an ACK that came, else data (or a FIN) that left;
    seq, end: of data, the byte behind its last (and behind a FIN); payload, segs: bytes and packets on
    the wire of data, 0 of ACKs; again: data that had left before; number: of an ACK;
    una, nxt: snd.una and snd.nxt after the event;
    plain: of an ACK, it carried no payload; at: its entry in `blocks`, (ACKs with any + 1, 8) SACK edges
    (start, end, start, …; -1 none), of which the first is of all without; top: the highest byte that an ACK
    acknowledged or SACKed.
    fin: the number that the FIN takes, -1 without one; fin_alone: it left in a packet without data;
    from_start: the SYN was captured; start: snd.una before the first event; sack: whether any ACK had
    SACK blocks; mss: the largest packet's payload.
    Only a capture at the sender shows this order.
    """

    flow: FlowView
    conn: int
    row: Array
    time_ns: Ints
    is_ack: Bools
    seq: Ints
    end: Ints
    payload: Array
    segs: Array
    again: Bools
    number: Ints
    una: Ints
    nxt: Ints
    plain: Bools
    at: Array
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
    fin = data["flags"] & FIN > 0
    sack, blocks = _sacks(flow, acks)
    start = 0 if from_start or not len(acks) else int(acks["ack"][0])
    given: dict[str, Array | int] = {
        "data_row": data.index, "data_ns": data["time_ns"], "seq": data["seq"], "length": data["length"], "fin": fin,
        "segs": data["segs"], "retrans": data["retrans"], "data": len(data),
        "ack_row": acks.index, "ack_ns": acks["time_ns"], "ack": acks["ack"], "ack_length": acks["length"],
        "acks": len(acks), "sack": sack, "sack_top": blocks[1:, 1::2].max(axis=1), "sacks": len(sack), "start": start,
    }  # fmt: skip
    walks = if_compiled()
    columns = merged(given) if walks is None else walks.trace(len(data) + len(acks), **given)
    last = (data["seq"][fin] + data["length"][fin]).max(initial=-1)
    return Trace(
        flow=flow,
        conn=conn,
        **columns,
        blocks=blocks,
        from_start=from_start,
        start=start,
        fin=int(last),
        fin_alone=bool((data["length"][fin] == 0).any()),
        sack=bool((blocks >= 0).any()),
        mss=int((-(-data["length"] // data["segs"].astype(np.int64))).max()) if len(data) else 1,
    )


def merged(given: Mapping[str, Any]) -> dict[str, Array]:
    """The columns of a trace by numpy; given: struct capture of core/native/walks.h."""
    count, answers, start = given["data"], given["acks"], given["start"]
    rows = (given["data_row"], given["ack_row"])
    places = [np.arange(len(own)) + search(others, own) for own, others in (rows, rows[::-1])]

    def both(of_data: Array | int, of_acks: Array | int, kind: type[np.generic] = np.int64) -> Array:
        found = np.zeros(count + answers, kind)
        for place, values in zip(places, (of_data, of_acks), strict=True):
            if isinstance(values, np.ndarray) or values:
                found[place] = values
        return found

    is_ack = both(0, 1, np.bool_)
    end, number = both(given["seq"] + given["length"] + given["fin"], 0), both(0, given["ack"])
    least = np.iinfo(np.int64).min
    entry, top = np.zeros(answers, np.int32), np.maximum(given["ack"], -1)
    entry[given["sack"]] = np.arange(1, given["sacks"] + 1)
    top[given["sack"]] = np.maximum(given["ack"][given["sack"]], given["sack_top"])
    return {
        "row": both(*rows, np.int32),
        "time_ns": both(given["data_ns"], given["ack_ns"]),
        "is_ack": is_ack,
        "seq": both(given["seq"], 0),
        "end": end,
        "payload": both(given["length"], 0, np.int32),
        "segs": both(np.where(given["length"] > 0, given["segs"], 0), 0, np.int32),
        "again": both(given["retrans"], 0, np.bool_),
        "number": number,
        "una": np.maximum(np.maximum.accumulate(np.where(is_ack, number, least)), start),
        "nxt": np.maximum(np.maximum.accumulate(np.where(is_ack, least, end)), start),
        "plain": both(0, given["ack_length"] == 0, np.bool_),
        "at": both(0, entry, np.int32),
        "top": both(0, top),
    }


def _sacks(flow: FlowView, acks: Rows) -> tuple[Ints, Ints]:
    """(which ACKs have SACK blocks, edges of none and of each of these)"""
    edges = [flow.records.others(name, acks.index, -1) for name in SACK_EDGES]
    found = np.unique(np.concatenate([places for places, _ in edges]))
    blocks = np.full((len(found) + 1, len(SACK_EDGES)), -1, np.int64)
    for number, (places, values) in enumerate(edges):
        blocks[1 + np.searchsorted(found, places), number] = values
    return found, blocks
