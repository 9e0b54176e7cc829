# SPDX-License-Identifier: Apache-2.0
"""Loss: data packets that left the sender and never reached the receiver, by matching both captures."""

from __future__ import annotations

from testctl.metrics.core.latencies import lost_packets
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="loss",
    help="data packets that left and never arrived",
    values=(
        MetricInfo("packets_sent", "", "data packets on the wire that left the sender, retransmissions included"),
        MetricInfo("packets_lost", "", "of these, how many never arrived; NaN without both captures", "lower"),
        MetricInfo("loss_rate", "", "packets_lost / packets_sent", "lower"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    sent = int(seen.sent["segs"].sum())
    if not len(seen.sent) or not len(seen.arrived):
        return {"packets_sent": sent, "packets_lost": NAN, "loss_rate": NAN}
    lost = int(lost_packets(seen).sum())
    return {"packets_sent": sent, "packets_lost": lost, "loss_rate": lost / sent}
