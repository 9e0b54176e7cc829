# SPDX-License-Identifier: Apache-2.0
"""Retransmission timeouts with their lengths, and tail loss probes.

By the sender's capture each is what it is by Linux's rules (recovery/timers.py), however short it is: a
retransmission that a timer and no ACK let go, the first outstanding packet (timeout) or the last one, or new data
(probe).  By the trace of the sender's TCP a timeout is an event of its own, and a probe is a retransmission outside
of recovery and loss states, or new data as in a capture.  A SYN that left again is a timeout; a SYN-ACK
is not.
"""

from __future__ import annotations

from testctl.metrics.core.available import of_flow
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.metrics.recovery.flow_timers import UNSURE, flow_timers, traced_timers
from testctl.metrics.recovery.timers import PROBE, RTO
from testctl.records import Records

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
            "timer that sent something, whichever is later; NaN without any",
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


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    departures = flow_timers(seen)
    lengths_ms = [departure.ran_ns / 1e6 for departure in departures if departure.by == RTO]
    counts = [sum(departure.by == by for departure in departures) for by in (RTO, PROBE, UNSURE)]
    timeouts, probes, unsure = counts
    if "tcp_events" in of_flow(records, flow):
        timeouts, traced, unsure_of_trace = traced_timers(seen)
        if not unsure_of_trace or unsure:
            probes, unsure = traced, unsure_of_trace
    return {
        "retransmission_timeouts": timeouts,
        "timeout_length_mean_ms": sum(lengths_ms) / len(lengths_ms) if lengths_ms else NAN,
        "timeout_length_max_ms": max(lengths_ms, default=NAN),
        "loss_probes": NAN if unsure else probes,
    }
