# SPDX-License-Identifier: Apache-2.0
"""Round-trip time at the sender: data packet to the first ACK that covers it (Karn's rule applies)."""

from __future__ import annotations

from testctl.metrics.core.percentiles import infos, summarise
from testctl.metrics.core.rtts import round_trips
from testctl.metrics.core.spec import MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

_TAILS = ("p50", "p99")

SPEC = MetricSpec(
    name="rtt",
    help="round-trip time from data to its ACK",
    needs="sender",
    values=infos("rtt", "round trip of data and ACK", _TAILS),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    return summarise("rtt", round_trips(view(records, flow)).rtt_ns, _TAILS)
