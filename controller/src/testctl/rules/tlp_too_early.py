# SPDX-License-Identifier: Apache-2.0
"""A tail loss probe waits for two RTTs."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import ms, probes, rto_min_ns
from testctl.rules.core.spec import SENDER, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="tlp-too-early",
    must="A tail loss probe comes no sooner than 2 * SRTT after the tail was sent, or when the RTO has passed; of a "
    "single segment, the time that an ACK may be delayed is added.",
    source="RFC 8985, 7.2",
    level="SHOULD",
    needs=SENDER,
    only_if=("timer",),
    quote="PTO = 2 * SRTT",
    linux="Two ticks are added, or for a single segment 200 ms (TCP_RTO_MIN): tcp_schedule_loss_probe().",
)
_SURE = 0.8
"""Of the SRTT, that the kernel's own is above: it may have other samples than a capture shows."""


def check(trace: Trace) -> Found:
    board = trace.board
    time = trace["time_ns"]
    least = rto_min_ns(trace)
    head = np.where(board.head_sent >= 0, time - time[np.maximum(board.head_sent, 0)], 0)
    maybe = probes(trace) & trace.from_syn & (head < least)
    pto = np.zeros(len(trace), np.int64)
    for row in np.flatnonzero(maybe).tolist():
        single = board.head[row] and trace.nxt[row] - trace.una[row] <= trace["length"][row]
        pto[row] = least if single else int(2 * _SURE * board.estimate(row)[0])
    return where(
        board.waited < pto,
        lambda row: f"sends the tail again {ms(board.waited[row])} after it was sent; the PTO is {ms(pto[row])}",
        lambda: board.last_sent,
    )
