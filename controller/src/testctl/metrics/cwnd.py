# SPDX-License-Identifier: Apache-2.0
"""Window and smoothed round trip as the sender's kernel tells them, by tcp_info.

Of the samples those count at which something was sent and not acknowledged, or waited to be sent, in whatever state
the connection was: a short flow's application has closed it (FIN_WAIT1) before most of its data leaves.
The mean is over samples, which are taken at a fixed interval; with parallel connections it is per
connection.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

_CAN_SEND = (1, 4, 8, 9, 11)
"""ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK, CLOSING of enum tcp_state: those with data to send or outstanding."""

_OF = {
    "cwnd_mean": ("packets", "congestion window of the sender: mean over"),
    "cwnd_min": ("packets", "congestion window of the sender: least of the"),
    "cwnd_max": ("packets", "congestion window of the sender: greatest of the"),
    "srtt_mean_us": ("µs", "smoothed round-trip time of the sender's TCP: mean over"),
    "srtt_max_us": ("µs", "smoothed round-trip time of the sender's TCP: greatest of the"),
}

SPEC = MetricSpec(
    name="cwnd",
    help="congestion window and smoothed RTT of the sender's kernel while it had data to send or outstanding",
    needs="tcp_info",
    values=tuple(
        MetricInfo(name, unit, f"{help} tcp_info samples with data to send or outstanding; NaN without any")
        for name, (unit, help) in _OF.items()
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    info = view(records, flow).info
    if not info:
        return dict.fromkeys(_OF, NAN)
    good = np.isin(info["state"], _CAN_SEND) & ((info["unacked"] > 0) | (info["notsent_bytes"] > 0))
    cwnd, srtt = info["snd_cwnd"][good], info["rtt"][good]
    if not len(cwnd):
        return dict.fromkeys(_OF, NAN)
    return {
        "cwnd_mean": float(cwnd.mean()),
        "cwnd_min": int(cwnd.min()),
        "cwnd_max": int(cwnd.max()),
        "srtt_mean_us": float(srtt.mean()),
        "srtt_max_us": int(srtt.max()),
    }
