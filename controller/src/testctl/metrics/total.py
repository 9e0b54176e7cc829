# SPDX-License-Identifier: Apache-2.0
"""All flows of a point together: the bytes of all over the time of all, from the first data packet of any to the last
of any, so what shares a link is never above its rate.
"""

from __future__ import annotations

from collections.abc import Sequence

from testctl.core.path import PathLink
from testctl.metrics.core.capacity import capacities_bps, links_of
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, view
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
            "of the links with a rate on the flows' paths the most used one's share: bits of all flows that pass it, "
            "as above but as the link counts them, over what it could carry (saturation); NaN when no rate is set",
            "higher",
        ),
    ),
    scope="point",
)


def compute(records: Records, flow: str = "*") -> dict[str, Number]:
    flows = [view(records, name) for name in records.plans_flows]
    by_link: dict[str, tuple[PathLink, list[FlowView]]] = {}
    for seen in flows:
        for link in links_of(seen):
            by_link.setdefault(link.name, (link, []))[1].append(seen)
    shares = [
        together_bps(passing, link.overhead) / rate
        for link, passing in by_link.values()
        for _, rate in capacities_bps([link], _together_ns(passing))
    ]
    return {
        "total_throughput_bps": together_bps(flows),
        "total_saturation": max((share for share in shares if share == share), default=NAN),
    }


def _together_ns(flows: Sequence[FlowView]) -> tuple[int, int]:
    """From the first data packet of any to the last of any."""
    times = [seen.active_ns for seen in flows if len(seen.arrived)]
    return min((first for first, _ in times), default=0), max((last for _, last in times), default=0)


def together_bps(flows: Sequence[FlowView], overhead: int = 0) -> float:
    """Bytes of all, and of each packet `overhead` more, over the time of all; NaN where no time passed."""
    start, end = _together_ns(flows)
    if end <= start:
        return NAN
    active = (seen for seen in flows if len(seen.arrived))
    return sum(arrived_bytes(seen.into, start, end, overhead) for seen in active) * 8e9 / (end - start)
