# SPDX-License-Identifier: Apache-2.0
"""What a point costs, by the plan alone, so that it is the same on every machine.

`testctl plan` shows it as wall time; a nightly run measures how long a unit takes here (nightly/budget.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from testctl.core.capacity import Link
from testctl.core.point import Point
from testctl.core.testbed_kind import DEFAULT, kind_of

BOOT_MS = 3000
"""A lab boots, and a point is written, in about this time."""
AGENTS_IN_BOOT, AGENT_MS = 3, 800
"""Hosts and switches that BOOT_MS includes; each further one starts an agent and its programs."""
WALL_POINT_MS = 2600
"""Beside its traffic a point by the wall clock takes about this time (docs/testbeds.md, Time of a point)."""
VIRTUAL_S_MS = 500
"""A second of traffic without packets: timers, samples of tcp_info."""
PACKETS_PER_MS, WALL_PACKETS_PER_MS = 40, 1000
"""Rate of the whole pipeline: the lab, captures to records, and metrics; by the wall clock without the first."""
ALONE_BPS = 1_000_000_000
"""Assumed rate of a flow if no port has a rate."""
ACK_EVERY = 2


def cost_ms(point: Point, testbed: str = DEFAULT) -> int:
    """Estimated wall time of a point on a testbed, in ms of a reference machine; boots of a rack's hosts are extra."""
    seconds = point.duration_ns / 1e9
    rates = [rate for one in point.settings.values() if (rate := Link.of(one).mean_bps(0, point.duration_ns))]
    sent = min(rates, default=ALONE_BPS) / 8 * seconds
    limits = [_bytes(flow.options) for flow in point.flows]
    if limits and all(limits):
        sent = min(sent, sum(limits))
    mtu = min((int(v["mtu"]) for v in point.settings.values() if v.get("mtu")), default=1500)
    packets = sent / mtu * (1 + 1 / ACK_EVERY)
    agents = len(point.topology.entities)
    if kind_of(testbed).deterministic:
        boot_ms = BOOT_MS + AGENT_MS * max(0, agents - AGENTS_IN_BOOT)
        return round(boot_ms + VIRTUAL_S_MS * seconds + packets / PACKETS_PER_MS)
    # Agents work side by side, and a second of traffic is one.
    return round(WALL_POINT_MS + 1000 * seconds + packets / WALL_PACKETS_PER_MS)


def _bytes(options: Mapping[str, object]) -> int:
    return int(str(options.get("bytes") or 0)) * int(str(options.get("parallel") or 1))
