# SPDX-License-Identifier: Apache-2.0
"""TS.Recent, the timestamp that a host has to echo, between what it must and what it may be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testctl.records.schema import ACK, RST, SYN, Bools, Ints
from testctl.rules.core.rows import NEVER
from testctl.rules.core.trace import Trace, once


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
    def recent(self) -> Ints:
        """The highest timestamp of SYNs that arrived, and of what began no higher than the last ACK that was sent (RFC
        7323, 4.3): no lower than `recent_at_least`, and but for DCTCP no higher than `recent_at_most`."""
        return self._recent(self.trace.acked, self.trace.has(SYN))

    @cached_property
    def recent_at_most(self) -> Ints:
        """Likewise of what TCP may have processed later than it arrived.

        To a DCTCP host of Linux the last ACK is one of all that had arrived, whatever its number.
        """
        trace, ack = self.trace, self.trace["ack"]
        acks = trace.out & trace.has(ACK) & ~trace.has(RST)
        last = trace.highest(np.maximum(ack, trace.rcv_nxt), acks) if trace.dctcp else trace.acked
        # An ACK that leaves an arrival out was sent before TCP processed it: the ACK counts too, for what follows.
        later = trace.reached(ack, acks, trace["seq"])
        waits = self._arrives & (later > np.arange(len(trace))) & (ack[later] < trace.end)
        # So does one that came again: an ACK without its D-SACK block was sent before.
        again = self._arrives & trace.repeated & (later > np.arange(len(trace)))
        waits |= again & (trace["sack1_start"][later] != trace["seq"])
        processed = np.full(len(trace), NEVER)
        np.maximum.at(processed, later[waits], trace.stamp[waits])
        if trace.dctcp:
            after = trace.following(acks)
            waits = self._arrives & (after >= 0) & (ack[after] < trace.end) & (trace.rcv_nxt[after] >= trace["seq"])
            np.maximum.at(processed, after[waits], trace.stamp[waits])
        return np.maximum(self._recent(last, trace.has(SYN)), trace.highest(processed, processed > NEVER))

    @cached_property
    def recent_at_least(self) -> Ints:
        """Likewise of what TCP can't have refused, nor left waiting: before the row's instant, and acceptable."""
        trace = self.trace
        acceptable = (trace.end > trace.rcv_nxt) & (trace.end <= trace.offered) & (trace["ack"] >= trace.una)
        sure = acceptable & (trace.rcv_nxt > NEVER) & ~trace.refused & (trace["ack"] <= trace.nxt)
        arrives = ~trace.out & trace.has(SYN)
        first = arrives & (trace.latest(arrives) < 0)  # of another nothing is taken: tcp_check_req(), RFC 7323, 5.3 R2
        return np.asarray(self._recent(np.where(sure, trace.acked, NEVER), first)[trace.instant])

    @cached_property
    def _arrives(self) -> Bools:
        return np.asarray(~self.trace.out & (self.trace["tsval"] >= 0) & ~self.trace.has(RST))

    def _recent(self, last_ack: Ints, syns: Bools) -> Ints:
        """The highest timestamp of these SYNs, and of what began no higher than these numbers."""
        trace = self.trace
        recorded = self._arrives & (syns | (trace["seq"] <= last_ack))
        return trace.highest(trace.stamp, recorded)


stamps_of = once(Timestamps)
