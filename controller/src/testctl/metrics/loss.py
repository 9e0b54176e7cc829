# SPDX-License-Identifier: Apache-2.0
"""Loss: data packets that left the sender and never reached the receiver.

By telemetry where every switch of the way has it: what came to the first, and what any of them dropped.
Otherwise by the captures: what left, and what of it can't be matched with an arrival.
"""

from __future__ import annotations

from testctl.metrics.core.available import of_flow
from testctl.metrics.core.latencies import lost_packets
from testctl.metrics.core.passages import covered, data_passages
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="loss",
    help="data packets that left and never arrived",
    needs="telemetry or sender and receiver",
    values=(
        MetricInfo(
            "packets_sent",
            "",
            "data packets on the wire that left the sender, retransmissions included",
            needs="telemetry or sender",
        ),
        MetricInfo("packets_lost", "", "of these, how many never arrived", "lower"),
        MetricInfo("loss_rate", "", "packets_lost / packets_sent; NaN when none was sent", "lower"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    if covered(seen):
        passed = data_passages(seen)
        return _values(
            sum(passage.came for passage in passed if not passage.hop), sum(passage.drops for passage in passed)
        )
    sent = int(seen.sent["segs"].sum())
    if not {"sender", "receiver"} <= of_flow(records, flow):
        return {"packets_sent": sent, "packets_lost": NAN, "loss_rate": NAN}
    return _values(sent, int(lost_packets(seen).sum()))


def _values(sent: int, lost: int) -> dict[str, Number]:
    return {"packets_sent": sent, "packets_lost": lost, "loss_rate": lost / sent if sent else NAN}
