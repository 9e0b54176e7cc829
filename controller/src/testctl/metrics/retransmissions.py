# SPDX-License-Identifier: Apache-2.0
"""Retransmissions: data packets that left the sender with bytes that had left before."""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.spec import MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="retransmissions",
    help="data packets that left the sender again",
    values=(
        MetricInfo("retransmissions", "", "data packets on the wire with bytes that had left before", "lower"),
        MetricInfo("retransmitted_bytes", "B", "payload of these packets", "lower"),
        MetricInfo("retransmission_rate", "", "retransmissions / data packets sent", "lower"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    sent = view(records, flow).sent
    again = sent["retrans"]
    packets, total = int(sent["segs"][again].sum()), int(sent["segs"].sum())
    return {
        "retransmissions": packets,
        "retransmitted_bytes": int(np.sum(sent["length"][again], dtype=np.int64)),
        "retransmission_rate": packets / total if total else 0.0,
    }
