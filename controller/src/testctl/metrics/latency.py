# SPDX-License-Identifier: Apache-2.0
"""One-way latency of every data packet: leaving the sender to its last byte's arrival at the receiver.

A packet that arrives merged with others (GRO) arrives when the merged one does.  Lost packets have
no latency; each transmission counts by itself.  Needs captures at both ends: with one clock, or with
two whose offset was measured (core/clocks.py); that is taken off, and what its error exceeds is NaN.
What a switch's telemetry tells has the switch's clock alone: see switch_latency.
"""

from __future__ import annotations

from testctl.metrics.core.clocks import known
from testctl.metrics.core.latencies import latencies
from testctl.metrics.core.percentiles import infos, summarise
from testctl.metrics.core.spec import MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

_TAILS = ("p50", "p99", "p999")

SPEC = MetricSpec(
    name="latency",
    help="one-way latency of every data packet",
    needs="sender and receiver",
    values=infos("latency", "one-way latency of data packets", _TAILS),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    return known(seen, summarise("latency", latencies(seen)[1], _TAILS, own=True))
