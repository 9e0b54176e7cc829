# SPDX-License-Identifier: Apache-2.0
"""ACKs: packets without payload that acknowledge a flow's data, not SYNs, FINs or resets.

With GRO a host's capture has one record for packets that were merged; ACKs are not merged.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import Rows, view
from testctl.records import Records
from testctl.records.schema import FIN, RST, SYN, Array

SPEC = MetricSpec(
    name="acks",
    help="ACKs of a flow's data",
    needs="receiver",
    values=(
        MetricInfo("acks_sent", "", "ACKs without payload that left the receiver"),
        MetricInfo("acks_received", "", "ACKs without payload that reached the sender", needs="sender"),
        MetricInfo("packets_per_ack", "", "data packets that reached the receiver / acks_sent; NaN without an ACK"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    sent = int(bare(seen.acks_out).sum())
    return {
        "acks_sent": sent,
        "acks_received": int(bare(seen.acks_in).sum()),
        "packets_per_ack": int(seen.arrived["segs"].sum()) / sent if sent else NAN,
    }


def bare(acks: Rows) -> Array:
    """Which of them carry nothing: no payload, SYN, FIN or RST."""
    return np.asarray((acks["length"] == 0) & (acks["flags"] & (SYN | FIN | RST) == 0))
