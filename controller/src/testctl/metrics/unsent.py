# SPDX-License-Identifier: Apache-2.0
"""Unsent: what the application wrote and TCP did not send yet, by tcp_info (tcpi_notsent_bytes)."""

from __future__ import annotations

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="unsent",
    help="bytes that wait unsent in the sender's sockets, per connection",
    needs="tcp_info",
    values=(
        MetricInfo("notsent_mean_bytes", "B", "mean over tcp_info samples; NaN without any", "lower"),
        MetricInfo("notsent_max_bytes", "B", "largest of the tcp_info samples; NaN without any", "lower"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    info = view(records, flow).info
    if not info or not (info["notsent_bytes"] >= 0).any():
        return {"notsent_mean_bytes": NAN, "notsent_max_bytes": NAN}
    known = info["notsent_bytes"][info["notsent_bytes"] >= 0]
    return {"notsent_mean_bytes": float(known.mean()), "notsent_max_bytes": int(known.max())}
