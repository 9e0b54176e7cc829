# SPDX-License-Identifier: Apache-2.0
"""Which retransmissions a timer sent, and which an ACK let go."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from testctl.metrics.core.rtts import round_trips
from testctl.metrics.recovery.trace import Trace
from testctl.metrics.stalls.table import flow_stalls
from testctl.records.schema import Ints

_FLOOR_NS = 1_000_000
_RTO_MIN_NS = 200_000_000
_ALMOST = 0.9
_SAMPLES = 64


class Timers:
    """Decides for the retransmissions of a connection."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def _ended(self) -> dict[int, str]:
        """What ended a silence, by the row that did: the stalls' own finding."""
        stalls = flow_stalls(self.trace.flow.records, self.trace.flow.name)
        return {stall.evidence.ender_row: stall.ended_by for stall in stalls if stall.evidence.ender_row >= 0}

    @cached_property
    def _rtts(self) -> tuple[Ints, Ints]:
        samples = round_trips(self.trace.flow)
        own = samples.conn == self.trace.conn
        order = np.argsort(samples.time_ns[own], kind="stable")
        return samples.time_ns[own][order], samples.rtt_ns[own][order]

    @cached_property
    def _rtos(self) -> tuple[Ints, Ints]:
        info = self.trace.flow.info
        if not info:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        own = (info["conn"] == self.trace.conn) & (info["rto"] > 0)
        return info["time_ns"][own], info["rto"][own]

    def rtt_ns(self, at_ns: int) -> int:
        """The median of the 64 round trips before; the first one after if none; 0 without any."""
        time_ns, rtt_ns = self._rtts
        if not len(time_ns):
            return 0
        position = int(np.searchsorted(time_ns, at_ns, side="right"))
        return int(np.median(rtt_ns[max(position - _SAMPLES, 0) : position])) if position else int(rtt_ns[0])

    def rto_ns(self, at_ns: int) -> int:
        """The retransmission timeout: the kernel's last word before, or at least 200 ms."""
        time_ns, rto_us = self._rtos
        before = int(np.searchsorted(time_ns, at_ns, side="right"))
        if before:
            return int(rto_us[before - 1]) * 1000
        return max(_RTO_MIN_NS, 2 * self.rtt_ns(at_ns))

    def sent_by(self, event: int, una: int, nxt: int, head_ns: int) -> str:
        """ "rto", "tlp" or "ack" for the retransmission at `event`.

        una, nxt: before it; head_ns: when the first outstanding packet was retransmitted last, -1 never.
        An ACK lets packets go within a round trip (even paced ones); a timer runs longer.  While ACKs
        go on coming the retransmission timer is known by how long ago the packet was retransmitted.
        """
        trace = self.trace
        now = int(trace.time_ns[event])
        head, tail = int(trace.seq[event]) <= una, int(trace.end[event]) >= nxt
        quiet = now - int(trace.time_ns[event - 1]) if event else 0
        if quiet > _FLOOR_NS and quiet > self.rtt_ns(now):
            said = self._ended.get(int(trace.row[event]), "")
            if said in ("rto", "tlp", "ack"):
                return said
            if head and tail:
                return "rto" if quiet >= _ALMOST * self.rto_ns(now) else "tlp"
            return "rto" if head else "tlp" if tail else "ack"
        if head and head_ns >= 0 and now - head_ns > _FLOOR_NS and now - head_ns >= _ALMOST * self.rto_ns(now):
            return "rto"
        return "ack"
