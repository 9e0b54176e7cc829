# SPDX-License-Identifier: Apache-2.0
"""Saturation: the share of what its path could carry that a flow used (the paper, section 5.2).

What a link could carry is its rate over the flow's active time (throughput's), earlier by the delay from the link to
the receiver: without the times at which it was down, and for a trace its opportunities.  Bytes are those that the
link counts: a port's framing is added to each packet's, and a trace counts from the IP header on, and 4 more.  A
port's policer is a rate, as the sender's htb_rate is; their bursts are not in it.
"""

from __future__ import annotations

from testctl.metrics.core.capacity import capacities_bps, links_of
from testctl.metrics.core.spec import NAN, PLAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.metrics.throughput import arrived_bytes
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
            "the path could carry in that time; NaN when no rate is set",
            "higher",
        ),
        MetricInfo(
            "capacity_bps",
            "bit/s",
            "lowest of the rates of the ports, their policers and the sender (htb_rate) on the path; of one that "
            "changes the mean over active_s; NaN when no rate is set",
            needs=PLAN,
        ),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    capacities = capacities_bps(links_of(seen), seen.active_ns)
    shares = [
        arrived_bytes(seen.into, *seen.active_ns, link.overhead) * 8 / seen.active_s / rate for link, rate in capacities
    ]
    return {"saturation": max(shares, default=NAN), "capacity_bps": min((rate for _, rate in capacities), default=NAN)}
