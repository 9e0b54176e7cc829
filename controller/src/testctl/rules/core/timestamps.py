# SPDX-License-Identifier: Apache-2.0
"""TS.Recent, the timestamp that a host has to echo, between what it must and what it may be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testctl.records.schema import ACK, RST, SYN, Bools, Ints
from testctl.rules.core.trace import NEVER, Trace


@dataclass
class Timestamps:
    trace: Trace

    @cached_property
    def agreed(self) -> Bools:
        """Connections whose SYNs and SYN-ACKs have the option, with one of each."""
        trace, syn = self.trace, self.trace.has(SYN)
        wanting = trace.anywhere(syn & (trace["tsval"] < 0))
        return np.asarray(trace.anywhere(syn & ~trace.has(ACK)) & trace.anywhere(syn & trace.has(ACK)) & ~wanting)

    @cached_property
    def recent_at_most(self) -> Ints:
        """The highest timestamp of what arrived and began no higher than the last ACK that was sent (RFC 7323, 4.3)."""
        trace = self.trace
        # An ACK that leaves an arrival out was sent before TCP processed it: the ACK counts too, for what follows.
        ack = trace.following(trace.out & trace.has(ACK))
        waits = ~trace.out & (trace["tsval"] >= 0) & ~trace.has(RST) & (ack >= 0)
        waits &= (trace["ack"][ack] >= trace["seq"]) & (trace["ack"][ack] < trace.end)
        processed = np.full(len(trace), NEVER)
        np.maximum.at(processed, ack[waits], trace["tsval"][waits])
        return np.maximum(trace.highest(trace["tsval"], self._recorded), trace.highest(processed, processed > NEVER))

    @cached_property
    def recent_at_least(self) -> Ints:
        """Likewise of what TCP can't have refused, nor left waiting: before the row's instant, and acceptable."""
        trace = self.trace
        acceptable = (trace.end > trace.rcv_nxt) & (trace.end <= trace.offered) & (trace["ack"] >= trace.una)
        sure = trace.has(SYN) | acceptable & (trace.rcv_nxt > NEVER) & ~trace.refused & (trace["ack"] <= trace.nxt)
        return np.asarray(trace.highest(trace["tsval"], self._recorded & sure)[trace.instant])

    @cached_property
    def _recorded(self) -> Bools:
        trace = self.trace
        there = ~trace.out & (trace["tsval"] >= 0) & ~trace.has(RST)
        return np.asarray(there & (trace.has(SYN) | (trace["seq"] <= trace.acked)))
