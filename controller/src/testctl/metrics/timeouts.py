# SPDX-License-Identifier: Apache-2.0
"""Retransmission timeouts with their lengths, and tail loss probes.

Both are seen in the packets, as what ended a silence; a timeout during which the connection
still sent is not a silence, so the kernel's own count is taken when it is higher and is this flow's.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, view
from testctl.metrics.stalls.table import flow_stalls
from testctl.records import Records

SPEC = MetricSpec(
    name="timeouts",
    help="retransmission timeouts and tail loss probes",
    values=(
        MetricInfo("retransmission_timeouts", "", "timeouts of the retransmission timer", "lower"),
        MetricInfo("timeout_length_mean_ms", "ms", "mean silence that a timeout ended; NaN without any", "lower"),
        MetricInfo("timeout_length_max_ms", "ms", "longest silence that a timeout ended; NaN without any", "lower"),
        MetricInfo("loss_probes", "", "tail loss probes", "lower"),
    ),
)


def _kernel_timeouts(seen: FlowView) -> int:
    """The sender's own count: of its sockets where the kernel has one, else of the host."""
    if seen.info and (seen.info["total_rto"] >= 0).any():
        conns = np.unique(seen.info["conn"])
        return sum(int(seen.info["total_rto"][seen.info["conn"] == conn].max()) for conn in conns)
    return int(seen.snmp.get("TcpExt.TCPTimeouts", 0))


def _lengths_ms(silences: list[tuple[int, int, str]]) -> list[float]:
    """Of every silence (start, length, what ended it) that a timeout ended: how long the timer ran.

    New data does not start the timer again (RFC 6298, 5.1): a silence that only new data ended, and the
    one that follows at once, are one wait.
    """
    lengths = []
    waiting_since = end = -1
    new_data = False
    for start, length, ended_by in sorted(silences):
        if not (new_data and start == end):
            waiting_since = start
        end, new_data = start + length, ended_by == "new_data"
        if ended_by == "rto":
            lengths.append((end - waiting_since) / 1e6)
    return lengths


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    stalls = flow_stalls(records, flow)
    lengths_ms = _lengths_ms([(stall.evidence.start_ns, stall.evidence.length_ns, stall.ended_by) for stall in stalls])
    probes = sum(stall.ended_by == "tlp" for stall in stalls)
    return {
        "retransmission_timeouts": max(len(lengths_ms), _kernel_timeouts(seen)),
        "timeout_length_mean_ms": sum(lengths_ms) / len(lengths_ms) if lengths_ms else NAN,
        "timeout_length_max_ms": max(lengths_ms, default=NAN),
        "loss_probes": max(probes, int(seen.snmp.get("TcpExt.TCPLossProbes", 0))),
    }
