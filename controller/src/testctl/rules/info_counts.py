# SPDX-License-Identifier: Apache-2.0
"""What struct tcp_info counts is what packets show."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, SYN, Array, Bools, Ints
from testctl.rules.core.needs import peer, too_big
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import samples

SPEC = RuleSpec(
    name="info-counts",
    must="The bytes and segments that TCP counts as sent, received, acknowledged, sent again or out of order are those "
    "of its packets.",
    source="RFC 4898, 4",
    level="MUST",
    needs=("start", "mtu", "order", "packets"),
    quote="The number of segments sent containing a positive length data segment",
    linux="Judged are samples of tcp_info.  Who opened the connection counts its SYN as a byte acknowledged; the other "
    "end counts no SYN-ACK as sent, and one SYN as received.  rcv_ooopack counts what came above a gap, a FIN "
    "too, and twice if it came twice.",
)
_OF_ARRIVED = ("segs_in", "data_segs_in", "rcv_ooopack")


def check(trace: Trace) -> Found:
    counts = _counts(trace)
    if too_big(trace, peer(trace)):  # then it sends smaller segments, and how many a packet merges is not known
        counts = {name: count for name, count in counts.items() if name not in _OF_ARRIVED}
    taken = samples(trace, *counts)
    rows = taken["row"]
    settled = taken["time_ns"] - trace["time_ns"][rows] >= trace.at_once_ns
    refused = trace.refused
    ever = (trace.count(refused.astype(np.int64), refused) + refused) > 0
    doubtful = {"bytes_received": refused[rows], "rcv_ooopack": ever[rows]}
    texts: dict[int, str] = {}
    for name, count in counts.items():
        wrong = settled & (taken[name] != count[rows]) & ~doubtful.get(name, np.bool_(False))
        for sample in np.flatnonzero(wrong).tolist():
            texts.setdefault(
                int(rows[sample]), f"tcp_info's {name} is {taken[name][sample]}, and packets show {count[rows[sample]]}"
            )
    return where(np.isin(np.arange(len(trace)), list(texts)), texts.__getitem__)


def _counts(trace: Trace) -> dict[str, Ints]:
    """What packets show of these fields at each row, the row counted."""

    def total(values: Array, of: Bools) -> Ints:
        return np.asarray(trace.count(values, of) + values * of)

    out, data, segs, length, syn = trace.out, trace.data, trace["segs"], trace["length"], trace.has(SYN)
    opened = trace.anywhere(out & syn & ~trace.has(ACK))
    sent_again = out & (trace.board.again & data | syn & (trace.count(segs, out & syn) > 0))
    # Before a connection that the peer opened is established it has no socket, and one SYN counts.
    other_syns = ~opened & syn & (out | (trace.count(segs, ~out & syn) > 0))
    return {
        "segs_out": total(segs, out & ~other_syns),
        "segs_in": total(segs, ~out & ~other_syns),
        "data_segs_out": total(segs, out & data),
        "data_segs_in": total(segs, ~out & data),
        "bytes_sent": total(length, out),
        "bytes_retrans": total(length, sent_again),
        "total_retrans": total(segs, sent_again),
        "bytes_acked": trace.highest(trace["ack"], ~out & trace.has(ACK), inclusive=True) + opened,
        "bytes_received": trace.arrived_to,
        "rcv_ooopack": total(segs, trace.taken & ~syn & (trace["seq"] > trace.rcv_nxt)),
    }
