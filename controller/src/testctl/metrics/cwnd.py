# SPDX-License-Identifier: Apache-2.0
"""Congestion window and smoothed RTT as the sender's kernel reported them, while the flow was active.

The mean is over samples, which are taken at a fixed interval; with parallel connections it is per
connection.
"""

from __future__ import annotations

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

_ESTABLISHED = 1
_OF = {
    "cwnd_mean": "packets",
    "cwnd_min": "packets",
    "cwnd_max": "packets",
    "srtt_mean_us": "µs",
    "srtt_max_us": "µs",
}

SPEC = MetricSpec(
    name="cwnd",
    help="congestion window and smoothed RTT of the sender's kernel",
    values=tuple(MetricInfo(name, unit, f"{name} of tcp_info samples; NaN without any") for name, unit in _OF.items()),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    if not seen.info:
        return dict.fromkeys(_OF, NAN)
    start, end = seen.active_ns
    time_ns = seen.info["time_ns"]
    good = (seen.info["state"] == _ESTABLISHED) & (time_ns >= start) & (time_ns <= end)
    cwnd, srtt = seen.info["snd_cwnd"][good], seen.info["rtt"][good]
    if not len(cwnd):
        return dict.fromkeys(_OF, NAN)
    return {
        "cwnd_mean": float(cwnd.mean()),
        "cwnd_min": int(cwnd.min()),
        "cwnd_max": int(cwnd.max()),
        "srtt_mean_us": float(srtt.mean()),
        "srtt_max_us": int(srtt.max()),
    }
