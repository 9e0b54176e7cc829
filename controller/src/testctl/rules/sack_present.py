# SPDX-License-Identifier: Apache-2.0
"""ACKs below a gap have a SACK block."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, RST, SYN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.sacks import in_use
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="sack-present",
    must="Where SACK is in use, an ACK that is below data that had arrived has a SACK block.",
    source="RFC 2018, 4",
    level="SHOULD",
    needs=("order", "packets"),
    only_if=("gap", "sack"),
    quote="SACK options SHOULD be included in all ACKs which do not ACK the highest sequence number in the data "
    "receiver's queue",
    linux="It knows the last four blocks alone: with more gaps it forgets the oldest, and reports none once those "
    "that came later are acknowledged (tcp_sack_new_extend(): if the sack array is full, forget about the last one).",
)


def check(trace: Trace) -> Found:
    acks = trace.out & trace.has(ACK) & ~trace.has(RST) & ~trace.has(SYN) & trace.from_syn & in_use(trace)
    came = np.where(trace.taken & trace.data, trace["seq"] + trace["length"], NEVER)
    bare = acks & ~trace.refused & (trace["sack1_start"] < 0)
    highest = trace.settled(came, trace.at_once_ns, bare)
    # The gap may have been filled meanwhile, and the ACK not have its number yet: `ack-is-rcv-nxt` sees that.
    gap = bare & (highest > trace["ack"])
    gap &= trace.settled(trace.arrived_to, trace.at_once_ns, gap) <= trace["ack"]
    if not gap.any():
        return NOTHING
    most = np.where(trace["tsval"] >= 0, 3, 4)
    full = acks & (sum((trace[f"sack{number}_start"] >= 0).astype(np.int64) for number in range(1, 5)) >= most)
    forgotten = trace.highest(trace.seen, full) > trace["ack"]
    return where(
        gap & ~forgotten,
        lambda row: f"acknowledges {trace['ack'][row]} without a SACK block; up to {highest[row]} had arrived",
        lambda: trace.latest(trace.taken & trace.data),
    )
