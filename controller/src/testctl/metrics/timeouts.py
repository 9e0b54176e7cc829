# SPDX-License-Identifier: Apache-2.0
"""Retransmission timeouts with their lengths, and tail loss probes.

By the sender's capture each is what it is by Linux's rules (recovery/timers.py), however short it is: a
retransmission that a timer and no ACK let go, the first outstanding packet (timeout) or the last one, or new data
(probe).  What leaves after a timeout into a window that the receiver took back is a probe of that window and no
timeout (RFC 9293, 3.8.6.1), as the kernel counts.  By the trace of the sender's TCP a timeout is an event of its own,
and a probe is a retransmission outside of recovery and loss states, or new data as in a capture.  A SYN that left again
is a timeout; a SYN-ACK is not.
"""

from __future__ import annotations

from testctl.metrics.core.available import of_flow
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, view
from testctl.metrics.recovery.flow_timers import UNSURE, flow_timers, traced_timers
from testctl.metrics.recovery.timers import PROBE, RTO
from testctl.records import Records
from testctl.records.schema import FIN

SPEC = MetricSpec(
    name="timeouts",
    help="retransmission timeouts and tail loss probes",
    needs="sender",
    values=(
        MetricInfo(
            "retransmission_timeouts",
            "",
            "times the retransmission timer ran out and a packet (a SYN too) left again",
            "lower",
            needs="sender or tcp_events",
        ),
        MetricInfo(
            "timeout_length_mean_ms",
            "ms",
            "mean time that the timer had run: since the packet left last, or since the last progress of ACKs or "
            "timer that sent something, whichever is later; NaN without any, and where a FIN without data left again",
            "lower",
        ),
        MetricInfo("timeout_length_max_ms", "ms", "longest of these; NaN without any", "lower"),
        MetricInfo(
            "loss_probes",
            "",
            "tail loss probes; NaN where new data left so late that a timer let it go or an application that is not "
            "greedy, and neither tcp_info, tcp_events nor the kernel's counter tells which",
            "lower",
            needs="sender or tcp_events",
        ),
    ),
)


def by_capture(records: Records, flow: str) -> tuple[int, int, int]:
    """(timeouts, probes, packets of new data that were probes or the application's) by the sender's capture."""
    departures = flow_timers(view(records, flow))
    timeouts, probes, unsure = (sum(departure.by == by for departure in departures) for by in (RTO, PROBE, UNSURE))
    return timeouts, probes, unsure


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    lengths_ms = [departure.ran_ns / 1e6 for departure in flow_timers(seen) if departure.by == RTO]
    timeouts, probes, unsure = by_capture(records, flow)
    if _fin_again(seen):
        lengths_ms = []
    if "tcp_events" in of_flow(records, flow):
        timeouts, traced, unsure_of_trace = traced_timers(seen)
        if unsure or not traced <= probes <= traced + unsure_of_trace:
            probes, unsure = traced, unsure_of_trace
    return {
        "retransmission_timeouts": timeouts,
        "timeout_length_mean_ms": sum(lengths_ms) / len(lengths_ms) if lengths_ms else NAN,
        "timeout_length_max_ms": max(lengths_ms, default=NAN),
        "loss_probes": NAN if unsure else probes,
    }


def _fin_again(seen: FlowView) -> bool:
    """Whether a FIN without data left again, for which a timer ran that is not among flow_timers()."""
    alone = (seen.out["flags"] & FIN > 0) & (seen.out["length"] == 0)
    conns = seen.out["conn"][alone]
    return len(conns) > len(set(conns.tolist()))
