# SPDX-License-Identifier: Apache-2.0
"""What a point costs, by the plan alone: the same on every machine and on every night.

How long a unit of cost takes is measured and belongs to the night (schedule.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from testctl.plan import Point

BOOT_MS = 3000
"""A lab boots, and a point is written, in about this time."""
VIRTUAL_S_MS = 500
"""A second of traffic, whatever goes through it: timers, samples of tcp_info."""
PACKETS_PER_MS = 40
"""Through the lab, from captures to records, and to metrics."""
ALONE_BPS = 1_000_000_000
"""What a flow is taken to reach where no port has a rate."""
ACK_EVERY = 2


def cost_ms(point: Point) -> int:
    """About the wall time of a point in the lab, in ms of a machine as it was measured once."""
    seconds = point.duration_ns / 1e9
    rates = [int(v["rate"]) for v in point.settings.values() if isinstance(v.get("rate"), int)]
    sent = min(rates, default=ALONE_BPS) / 8 * seconds
    limits = [_bytes(flow["options"]) for flow in point.flows]
    if limits and all(limits):
        sent = min(sent, sum(limits))
    mtu = min((int(v["mtu"]) for v in point.settings.values() if v.get("mtu")), default=1500)
    packets = sent / mtu * (1 + 1 / ACK_EVERY)
    return round(BOOT_MS + VIRTUAL_S_MS * seconds + packets / PACKETS_PER_MS)


def _bytes(options: Mapping[str, object]) -> int:
    return int(str(options.get("bytes") or 0)) * int(str(options.get("parallel") or 1))
