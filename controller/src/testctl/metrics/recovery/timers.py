# SPDX-License-Identifier: Apache-2.0
"""Whether a retransmission was let go by an ACK or by a timer: retransmission timeout or tail loss probe.

By the sender's capture alone, with Linux's rules.  A timeout (RFC 6298) sends the first outstanding packet again,
a smoothed round trip and at least RTO_MIN_NS after that packet left last.  A probe (RFC 8985, section 7) sends the
last one again about two round trips after the last departure or progress of ACKs, once until more is acknowledged;
it is always the first timer to run out where nothing is SACKed, so a single outstanding packet is probed first.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from testctl_agent.spec.types import Value

from testctl.metrics.core.view import FlowView
from testctl.metrics.recovery.round_trips import RoundTrips
from testctl.metrics.recovery.trace import Trace

ACK, RTO, PROBE = "ack", "rto", "tlp"
RTO_MIN_NS = 200_000_000
FLOOR_NS = 1_000_000
"""Least silence in which a timer may have run; a time stamp of TCP tells less than that."""
ALMOST = 0.9
"""Of an estimated time: a timer may be early by this estimate."""
_JIFFIES_NS = 2_000_000
"""Two of a kernel with 1000 of them a second: what a probe of several packets waits in addition to two round trips."""
_SAME_NS = 5_000
"""Within this after an ACK a packet was let go by it, and by no timer."""
_LOSS = 4


def _settings(flow: FlowView) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
    """What the plan sets of the sender and of the receiver."""
    settings = flow.records.point.settings
    return settings.get(flow.sender, {}), settings.get(flow.receiver, {})


def probing(flow: FlowView) -> bool:
    """Whether the sender sends tail loss probes: as the plan sets it, else as Linux does by default."""
    own, other = _settings(flow)
    sack = all(int(end.get("net.ipv4.tcp_sack", 1)) for end in (own, other))
    return sack and int(own.get("net.ipv4.tcp_early_retrans", 3)) in (3, 4)


def rto_min_ns(flow: FlowView) -> int:
    """The least timeout of the sender: as the plan sets it, else Linux's."""
    return int(_settings(flow)[0].get("net.ipv4.tcp_rto_min_us", RTO_MIN_NS // 1000)) * 1000


def rto_max_ns(flow: FlowView) -> int:
    """The longest timeout of the sender: as the plan sets it (Linux 6.15), else Linux's."""
    return int(_settings(flow)[0].get("net.ipv4.tcp_rto_max_ms", 120_000)) * 1_000_000


class Timers:
    """Decides for the retransmissions of a connection, in their order.

    ran_ns: how long the timer had run that sent the last retransmission that a timer sent.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._round_trips = RoundTrips(trace.flow, trace.conn)
        self.ran_ns = 0
        self._timer_ns = -1  # when a timer sent last
        self._rto_min_ns, self._rto_max_ns = rto_min_ns(trace.flow), rto_max_ns(trace.flow)
        self.probing = probing(trace.flow)

    def srtt_ns(self, at_ns: int) -> int:
        """The smoothed round trip (RFC 6298, section 2): the kernel's where tcp_info was read after the last ACK,
        else by the samples of packets; 0 without any."""
        info, acks = self.trace.info, self.trace.acks
        last = int(np.searchsorted(info["time_ns"], at_ns)) - 1 if info else -1
        before = int(np.searchsorted(acks.time_ns, at_ns)) - 1
        exact = last >= 0 and (before < 0 or info["time_ns"][last] > acks.time_ns[before])
        return (int(info["rtt"][last]) * 1000 if exact else 0) or self._round_trips.smoothed_ns(at_ns)

    def probe_ns(self, at_ns: int) -> float:
        """The least time that a probe of several packets waits: two round trips, less what a timer may be early by
        this estimate of them, and two jiffies (tcp_schedule_loss_probe())."""
        return 2 * ALMOST * self.srtt_ns(at_ns) + _JIFFIES_NS

    def rto_ns(self, at_ns: int) -> float:
        """The least time after which the retransmission timer runs out, less what it may be early by this estimate."""
        return ALMOST * min(self.srtt_ns(at_ns) + self._rto_min_ns, self._rto_max_ns)

    def _progress_ns(self, una: int) -> int:
        """When `una` was acknowledged; -1 when nothing has been."""
        acks = self.trace.acks
        if una <= self.trace.start:
            first_is_ack = len(acks.row) > 0 and self.trace.event_of_ack(0) == 0
            return int(acks.time_ns[0]) if first_is_ack else -1
        return int(acks.time_ns[np.searchsorted(acks.una, una)])

    def sent_by(self, sent: int, event: int, una: int, nxt: int, head_ns: int, doubt: bool, state: int) -> str:
        """RTO, PROBE or ACK for a retransmission.

        sent, event: its place among the departures and among all events; una, nxt, state: before it;
        head_ns: when the first outstanding packet was retransmitted last, -1 never;
        doubt: something is SACKed or was acknowledged twice, or a recovery goes on, so an ACK may have let it go.
        """
        data = self.trace.data
        now, progress = int(data.time_ns[sent]), self._progress_ns(una)
        head = int(np.searchsorted(data.nxt, una, side="right"))  # unless the capture does not show it
        head_sent = max(int(data.time_ns[head]) if head < len(data.nxt) else -1, head_ns)
        since_ack = now - progress if progress >= 0 else now
        by = self._by(sent, event, una, nxt, doubt, state, since_ack, now - head_sent)
        if by != ACK:
            self.ran_ns = now - max(progress, head_sent if by == RTO else self._left_ns(sent), self._timer_ns)
            self._timer_ns = now
        return by

    def _left_ns(self, sent: int) -> int:
        """When the departure before this one left."""
        return int(self.trace.data.time_ns[sent - 1]) if sent else -1

    def _by(
        self, sent: int, event: int, una: int, nxt: int, doubt: bool, state: int, since_ack: int, since_head: int
    ) -> str:
        data = self.trace.data
        now = int(data.time_ns[sent])
        head, tail = int(data.seq[sent]) <= una, self.trace.end_of(sent) >= nxt
        if not head and not tail:
            return ACK
        if event > sent and now - int(self.trace.acks.time_ns[event - sent - 1]) <= _SAME_NS:
            return ACK
        rtt = self.srtt_ns(now)
        rto = self.rto_ns(now)
        probed = self._timer_ns >= 0 and now - self._timer_ns <= since_ack
        since_timer = now - self._timer_ns if self._timer_ns >= 0 else now
        idle = min(since_ack, now - self._left_ns(sent))
        may_probe = self.probing and not probed and state < _LOSS - 1
        probes = may_probe and tail and (not head or not doubt)
        if probes and (idle >= self.probe_ns(now) or (idle > FLOOR_NS and since_head >= rto)):
            return PROBE
        if head and since_head >= rto and min(since_ack, since_timer) >= rto:
            return RTO
        quiet = now - self.trace.time_before(sent, event) if event else 0
        return RTO if head and since_head >= rto and quiet > max(FLOOR_NS, rtt) else ACK
