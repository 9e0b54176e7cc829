# SPDX-License-Identifier: Apache-2.0
"""Retransmissions: data packets that left the sender with bytes that had left before."""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.available import of_flow
from testctl.metrics.core.passages import data_passages
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="retransmissions",
    help="data packets that left the sender again",
    needs="sender or telemetry",
    values=(
        MetricInfo("retransmissions", "", "data packets on the wire with bytes that had left before", "lower"),
        MetricInfo("retransmitted_bytes", "B", "payload of these packets", "lower"),
        MetricInfo("retransmission_rate", "", "retransmissions / data packets sent; NaN when none was sent", "lower"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    first = [] if "sender" in of_flow(records, flow) else [p.rows for p in data_passages(seen) if not p.hop]
    sent = first or [seen.sent]  # a link keeps the order: the first switch sees what left
    again = [rows["retrans"] for rows in sent]
    packets = sum(int(rows["segs"][these].sum()) for rows, these in zip(sent, again, strict=True))
    total = sum(int(rows["segs"].sum()) for rows in sent)
    return {
        "retransmissions": packets,
        "retransmitted_bytes": sum(
            int(np.sum(rows["length"][these], dtype=np.int64)) for rows, these in zip(sent, again, strict=True)
        ),
        "retransmission_rate": packets / total if total else NAN,
    }
