# SPDX-License-Identifier: Apache-2.0
"""All flows of a point together: the bytes of all over the time of all, from the first data packet of any to the last
of any, so what shares a link is never above its rate.
"""

from __future__ import annotations

from collections.abc import Sequence

from testctl.core.path import PathLink
from testctl.metrics.core.capacity import Share, links_of, most_used, share_of
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, view
from testctl.metrics.throughput import arrived_bytes, frame_of
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
            "as above but as the link counts them, over what it could carry; NaN where saturation is",
            "higher",
        ),
    ),
    scope="point",
)


def compute(records: Records, flow: str = "*") -> dict[str, Number]:
    flows = [view(records, name) for name in records.plans_flows]
    by_link: dict[str, list[tuple[FlowView, list[PathLink]]]] = {}
    for seen in flows:
        links = links_of(seen)
        for at, link in enumerate(links):
            by_link.setdefault(link.name, []).append((seen, links[at:]))
    return {
        "total_throughput_bps": together_bps(flows),
        "total_saturation": most_used(_share(passing) for passing in by_link.values()),
    }


def _share(passing: Sequence[tuple[FlowView, list[PathLink]]]) -> Share | None:
    """Of the link that all these flows pass, each with the links after it."""
    flows = [seen for seen, _ in passing]
    active_ns = _together_ns(flows)
    bits = _bytes_together(flows, passing[0][1][0].overhead) * 8
    shares = [share_of(links, bits, active_ns, frame_of(seen.arrived)) for seen, links in passing]
    known = [share for share in shares if share is not None]
    return (min(least for least, _ in known), known[0][1]) if known else None


def _together_ns(flows: Sequence[FlowView]) -> tuple[int, int]:
    """From the first data packet of any to the last of any."""
    times = [seen.active_ns for seen in flows if len(seen.arrived)]
    return min((first for first, _ in times), default=0), max((last for _, last in times), default=0)


def together_bps(flows: Sequence[FlowView]) -> float:
    """Wire bits of all over the time of all; NaN where no time passed."""
    start, end = _together_ns(flows)
    return _bytes_together(flows) * 8e9 / (end - start) if end > start else NAN


def _bytes_together(flows: Sequence[FlowView], overhead: int = 0) -> int:
    """Wire bytes of all after the first data packet of any, and of each packet `overhead` more."""
    active_ns = _together_ns(flows)
    return sum(arrived_bytes(seen.into, *active_ns, overhead) for seen in flows if len(seen.arrived))
