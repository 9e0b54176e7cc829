# SPDX-License-Identifier: Apache-2.0
"""What struct tcp_info counts is what packets show."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, SYN, Array, Bools, Ints
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import samples

SPEC = RuleSpec(
    name="info-counts",
    must="The bytes and segments that TCP counts as sent, received, acknowledged, sent again or out of order are those "
    "of its packets.",
    source="RFC 4898, 4",
    level="MUST",
    needs=("start", "order", "packets"),
    quote="The number of segments sent containing a positive length data segment",
    linux="Judged are samples of tcp_info.  Who opened the connection counts its SYN as a byte acknowledged, and the "
    "other end does not count its SYN-ACK as a segment sent.  rcv_ooopack counts what came above a gap, twice if it "
    "came twice.",
)


def check(trace: Trace, other: Trace | None) -> Found:
    counts = _counts(trace)
    taken = samples(trace, *counts)
    rows = taken["row"]
    settled = taken["time_ns"] - trace["time_ns"][rows] >= trace.at_once_ns
    texts: dict[int, str] = {}
    for name, count in counts.items():
        for sample in np.flatnonzero(settled & (taken[name] != count[rows])).tolist():
            texts.setdefault(
                int(rows[sample]), f"tcp_info's {name} is {taken[name][sample]}, and packets show {count[rows[sample]]}"
            )
    return where(np.isin(np.arange(len(trace)), list(texts)), texts.__getitem__)


def _counts(trace: Trace) -> dict[str, Ints]:
    """What packets show of these fields at each row, the row counted."""

    def total(values: Array, of: Bools) -> Ints:
        return np.asarray(trace.count(values, of) + values * of)

    out, data, segs, length = trace.out, trace.data, trace["segs"], trace["length"]
    opened = trace.anywhere(out & trace.has(SYN) & ~trace.has(ACK))
    again = trace.board.again & data
    return {
        "segs_out": total(segs, out) - ~opened,
        "segs_in": total(segs, ~out),
        "data_segs_out": total(segs, out & data),
        "data_segs_in": total(segs, ~out & data),
        "bytes_sent": total(length, out),
        "bytes_retrans": total(length, again),
        "total_retrans": total(segs, again),
        "bytes_acked": trace.highest(trace["ack"], ~out & trace.has(ACK), inclusive=True) + opened,
        "bytes_received": trace.arrived_to,
        "rcv_ooopack": total(segs, ~out & data & (trace["seq"] > trace.rcv_nxt)),
    }
