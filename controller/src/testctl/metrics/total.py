# SPDX-License-Identifier: Apache-2.0
"""All flows of a point together: the bytes of all over the time of all, from the first data packet of any to the last
of any, so what shares a link is never above its rate.
"""

from __future__ import annotations

from collections.abc import Sequence

from testctl.metrics.core.capacity import rated_links
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.metrics.throughput import arrived_bytes
from testctl.records import Records

SPEC = MetricSpec(
    name="total",
    help="throughput of all flows of a point together",
    needs="receiver",
    values=(
        MetricInfo(
            "total_throughput_bps",
            "bit/s",
            "wire bits of all flows that arrived after the first data packet of any, per second to the last of any",
            "higher",
        ),
        MetricInfo(
            "total_saturation",
            "",
            "of the rates set on the flows' paths the most used one's share: throughput of all flows that pass it, "
            "as above, over the rate; NaN when none is set",
            "higher",
        ),
    ),
    scope="point",
)


def compute(records: Records, flow: str = "*") -> dict[str, Number]:
    shares = [together_bps(records, flows) / rate for flows, rate in rated_links(records).values()]
    return {
        "total_throughput_bps": together_bps(records, records.plans_flows),
        "total_saturation": max((share for share in shares if share == share), default=NAN),
    }


def together_bps(records: Records, flows: Sequence[str]) -> float:
    """Bytes of all over the time of all; NaN where no time passed."""
    active = [view(records, name) for name in flows]
    times = [seen.active_ns for seen in active if len(seen.arrived)]
    start, end = min((first for first, _ in times), default=0), max((last for _, last in times), default=0)
    if end <= start:
        return NAN
    return sum(arrived_bytes(seen.into, start, end) for seen in active) * 8e9 / (end - start)
