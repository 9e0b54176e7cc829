# SPDX-License-Identifier: Apache-2.0
"""What a receiver takes for the sender's MSS is the size of the segments that come."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import samples

SPEC = RuleSpec(
    name="received-mss",
    must="A receiver takes as the sender's MSS no more than the longest segment that came, and no less if the last one "
    "in order is as long.",
    source="Linux, tcp_measure_rcv_mss()",
    level="Linux",
    needs=("start", "order", "packets"),
    quote="skb->len may jitter because of SACKs, even if peer sends good full-sized frames",
    linux="It begins with up to 536 bytes, and is no more than the MSS that the receiver offered, less the timestamps. "
    "Judged are samples of tcp_info (rcv_mss).",
)
_INITIAL = 536
"""TCP_MSS_DEFAULT."""


def check(trace: Trace) -> Found:
    taken = samples(trace, "rcv_mss", "advmss")
    rows, mss = taken["row"], taken["rcv_mss"]
    came = trace.taken & trace.data
    length, segs = trace["length"], np.maximum(trace["segs"], 1)
    size = -(-length // segs)
    most = np.where(segs > 1, (length - 1) // np.maximum(segs - 1, 1), length)  # the last of several may be short
    longest, most = (
        np.minimum(trace.highest(values, came, inclusive=True)[rows], taken["advmss"]) for values in (size, most)
    )
    last = np.where(came, np.arange(len(trace)), trace.latest(came))[rows]
    as_long = (last >= 0) & (trace["seq"] == trace.rcv_nxt)[last] & (np.minimum(size[last], longest) == longest)
    settled = taken["time_ns"] - trace["time_ns"][rows] >= trace.at_once_ns
    wrong = np.flatnonzero(settled & ((mss > np.maximum(most, _INITIAL)) | as_long & (mss < longest)))
    sample = trace.sparse(rows[wrong], wrong)
    return where(
        np.isin(np.arange(len(trace)), rows[wrong]),
        lambda row: f"takes {mss[sample[row]]} bytes as the MSS; the longest segment had {longest[sample[row]]}",
    )
