# SPDX-License-Identifier: Apache-2.0
"""Saturation: the share of what its path could carry that a flow used (the paper, section 5.2).

What a link could carry is its rate over the flow's active time (throughput's), earlier by the delay from the link to
the receiver: without the times at which it was down, and for a trace its opportunities.  Bytes are those that the
link counts: a port's framing is added to each packet's, and a trace counts from the IP header on, and 4 more.  A
port's policer is a rate, as the sender's htb_rate is; their bursts are not in it.
"""

from __future__ import annotations

from testctl.metrics.core.capacity import capacity_bps, links_of, most_used, share_of
from testctl.metrics.core.spec import PLAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.metrics.throughput import arrived_bytes, frame_of
from testctl.records import Records

SPEC = MetricSpec(
    name="saturation",
    help="the share of what the flow's path could carry that it used",
    needs="receiver",
    values=(
        MetricInfo(
            "saturation",
            "",
            "bits that arrived after the first data packet, as the link counts them, over what the most used link of "
            "the path could carry in that time; NaN when no rate is set, and for a flow so short that a packet's time "
            "at later links, or an opportunity of a trace, is more than a twentieth of it",
            "higher",
        ),
        MetricInfo(
            "capacity_bps",
            "bit/s",
            "lowest of the rates of the ports, their policers and the sender (htb_rate) on the path; of one that "
            "changes the mean over active_s, or the rate then where all arrived at one instant; NaN when no rate is "
            "set, or one changes and nothing arrived",
            needs=PLAN,
        ),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    links, into, frame = links_of(seen), seen.into, frame_of(seen.arrived)
    shares = (
        share_of(links[at:], arrived_bytes(into, *seen.active_ns, link.overhead) * 8, seen.active_ns, frame)
        for at, link in enumerate(links)
    )
    return {"saturation": most_used(shares), "capacity_bps": capacity_bps(seen)}
