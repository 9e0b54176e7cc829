# SPDX-License-Identifier: Apache-2.0
"""How long a receiver delays an ACK follows the time between segments."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import ms
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import samples

SPEC = RuleSpec(
    name="delayed-ack-time",
    must="The time for which a receiver delays ACKs is at least 40 ms and no longer than its RTO.",
    source="Linux, tcp_event_data_recv()",
    level="Linux",
    quote="icsk->icsk_ack.ato = min3((icsk->icsk_ack.ato >> 1) + (u32)m, icsk->icsk_rto, (u32)TCP_DELACK_MAX)",
    linux="Judged are samples of tcp_info; the time is 0 until data has come.",
)
_LEAST_US = 40_000
"""TCP_ATO_MIN."""


def check(trace: Trace, other: Trace | None) -> Found:
    taken = samples(trace, "ato", "rto")
    wrong = np.flatnonzero((taken["ato"] > 0) & ((taken["ato"] < _LEAST_US) | (taken["ato"] > taken["rto"])))
    rows, sample = taken["row"][wrong], trace.sparse(taken["row"][wrong], wrong)
    return where(
        np.isin(np.arange(len(trace)), rows),
        lambda row: (
            f"delays ACKs for {ms(1000 * taken['ato'][sample[row]])} at an RTO of "
            f"{ms(1000 * taken['rto'][sample[row]])}"
        ),
    )
