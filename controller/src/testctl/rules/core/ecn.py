# SPDX-License-Identifier: Apache-2.0
"""What the ends of a connection agreed on about ECN, by the flags of its handshake."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testctl.records.schema import ACK, CE, CWR, ECE, RST, SYN, Bools
from testctl.rules.core.rows import NEVER
from testctl.rules.core.trace import Trace, once

_BOTH = ECE | CWR


@dataclass
class Ecn:
    """Masks over the rows of a trace.

    A connection is of `classic`, `accurate` or `off`; not, where SYNs or SYN-ACKs of its handshake differ.
    """

    trace: Trace

    @cached_property
    def classic(self) -> Bools:
        """Connections that use ECN of RFC 3168."""
        return self._all(self._setup, self.trace.has(ECE) & ~self.trace.has(CWR) & (self.trace["ae"] == 0))

    @cached_property
    def accurate(self) -> Bools:
        """Connections that use Accurate ECN (RFC 9768, 3.1)."""
        setup = self._setup & (self.trace["ae"] == 1)
        return self._all(setup, self.trace.has(CWR) | (self.trace["ae"] == 1))

    @cached_property
    def off(self) -> Bools:
        """Connections that use no ECN: no SYN asks for it, or no SYN-ACK agrees."""
        trace, syn, flags = self.trace, self.trace.has(SYN), self.trace["flags"] & _BOTH
        request, answer = syn & ~trace.has(ACK), syn & trace.has(ACK)
        refused = ~trace.anywhere(answer & ((flags != 0) | (trace["ae"] == 1)))
        unasked = ~trace.anywhere(request & (flags == _BOTH))
        return np.asarray(trace.anywhere(request) & trace.anywhere(answer) & (refused | unasked))

    @cached_property
    def every_packet(self) -> Bools:
        """Connections in which the host sent its SYN with ECT: its congestion control has all packets ECN-capable."""
        trace = self.trace
        return trace.anywhere(trace.out & trace.has(SYN) & (trace["ecn"] > 0))

    @cached_property
    def answers(self) -> Bools:
        """Packets that leave with an ACK number, after the handshake."""
        trace = self.trace
        return np.asarray(trace.out & trace.has(ACK) & ((trace["flags"] & (SYN | RST)) == 0))

    @cached_property
    def marked(self) -> Bools:
        """Data that arrives with CE."""
        return np.asarray(~self.trace.out & self.trace.data & (self.trace["ecn"] == CE))

    @cached_property
    def acceptable(self) -> Bools:
        """Packets that arrive and that no receiver may refuse: within the window, and not of data that it had."""
        trace = self.trace
        missing = np.where(trace.data, trace.end > trace.rcv_nxt, trace["seq"] >= trace.rcv_nxt)
        within = missing & (trace.end <= trace.offered) & (trace.rcv_nxt > NEVER)
        return np.asarray(
            ~trace.out & within & ~trace.repeated & ~trace.refused & ((trace["flags"] & (SYN | RST)) == 0)
        )

    @cached_property
    def ended(self) -> Bools:
        """Rows behind the FINs of both ends: TIME-WAIT answers without the connection's state."""
        trace, fin = self.trace, (self.trace["flags"] & 1) != 0
        return np.asarray((trace.latest(trace.out & fin) >= 0) & (trace.latest(~trace.out & fin) >= 0))

    @property
    def _setup(self) -> Bools:
        return np.asarray((self.trace["flags"] & _BOTH) == _BOTH)

    def _all(self, request: Bools, answer: Bools) -> Bools:
        """Connections all of whose SYNs and SYN-ACKs are of these masks, with one of each."""
        trace, syn, ack = self.trace, self.trace.has(SYN), self.trace.has(ACK)
        setup, reply = syn & ~ack, syn & ack
        wrong = trace.anywhere(setup & ~request | reply & ~answer)
        return np.asarray(trace.anywhere(setup) & trace.anywhere(reply) & ~wrong)


ecn_of = once(Ecn)
