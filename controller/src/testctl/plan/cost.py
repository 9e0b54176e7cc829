# SPDX-License-Identifier: Apache-2.0
"""Estimates the cost of a point from the plan alone: equal on every machine.

`testctl plan` shows it as wall time; a nightly run measures how long a unit takes here (nightly/budget.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from testctl.core import routes
from testctl.core.path import path_rates
from testctl.core.point import Point, PointFlow
from testctl.core.testbed_kind import DEFAULT, kind_of

BOOT_MS = 2000
"""Time for booting a lab and writing a point."""
AGENTS_IN_BOOT, AGENT_MS = 3, 800
"""Hosts and switches that BOOT_MS includes; each further one starts an agent and its programs."""
WALL_POINT_MS = 2600
"""Time that a wall-clock point takes in addition to its traffic (docs/testbeds.md, Time of a point)."""
VIRTUAL_S_MS = 20
"""A second of traffic without packets: timers, samples of tcp_info."""
PACKETS_PER_MS, WALL_PACKETS_PER_MS = 150, 1000
"""Rate of the whole pipeline: the lab, captures to records, and metrics; by the wall clock without the first."""
ALONE_BPS = 1_000_000_000
"""Assumed rate of a flow if no port has a rate."""
ACK_EVERY = 2
ROW_MEMORY, ROW_RAW, ROW_KEPT = 300, 150, 25
"""Bytes of a row of the packets table: of memory while it is analysed and drawn, which takes more, and on the disk
while its point runs and later.  Measured with 3.7 M and 15 M rows; merged packets are fewer rows."""
POINT_KEPT = 1_000_000
"""Bytes on disk of a point without its packets."""


def cost_ms(point: Point, testbed: str = DEFAULT) -> int:
    """Estimated wall time of a point on a testbed, in ms of a reference machine; boots of a rack's hosts are extra."""
    seconds, packets = point.duration_ns / 1e9, sum(_packets(point).values())
    agents = len(point.topology.entities)
    if kind_of(testbed).deterministic:
        boot_ms = BOOT_MS + AGENT_MS * max(0, agents - AGENTS_IN_BOOT)
        return round(boot_ms + VIRTUAL_S_MS * seconds + packets / PACKETS_PER_MS)
    # Agents work in parallel, and traffic runs in real time.
    return round(WALL_POINT_MS + 1000 * seconds + packets / WALL_PACKETS_PER_MS)


def rows(point: Point) -> int:
    """Estimated rows of a point's packets table: one for each packet at each recording host or switch."""
    places = {flow.name: sum(1 for entity in _way(point, flow) if _records(point, entity)) for flow in point.flows}
    return round(sum(packets * places[name] for name, packets in _packets(point).items()))


def memory_bytes(point: Point) -> int:
    """Estimated memory that the analysis of a point takes."""
    return rows(point) * ROW_MEMORY


def disk_bytes(points: Sequence[Point], jobs: int, keep_captures: bool = False) -> int:
    """Estimated space that a run takes at most, with so many points at once."""
    counts = [rows(point) for point in points]
    kept = ROW_KEPT + ROW_RAW * keep_captures
    return sum(POINT_KEPT + kept * count for count in counts) + jobs * ROW_RAW * max(counts, default=0)


def _way(point: Point, flow: PointFlow) -> Iterator[str]:
    """The entities on all paths of a flow."""
    return chain(flow.ends, *({switch for switch, _ in hop} for hop in routes.hops(point, flow)))


def _records(point: Point, entity: str) -> bool:
    values = point.settings.get(entity, {})
    return values.get("capture") is not False and values.get("telemetry") is not False


def _packets(point: Point) -> dict[str, float]:
    """Flow → packets on the wire, data and ACKs: its share of its slowest link, or its byte limit."""
    seconds = point.duration_ns / 1e9
    mtu = min((int(v["mtu"]) for v in point.settings.values() if v.get("mtu")), default=1500)
    sizes: dict[tuple[str, float], dict[str, float]] = {}
    for flow in point.flows:
        back = flow.options.get("reverse") is True
        rates = path_rates(point, flow, back=back) or {f"{flow.source} alone": ALONE_BPS}
        slowest = min(rates, key=lambda name: rates[name])
        most = max(rates[slowest] / 8 * seconds, mtu)
        limit = int(str(flow.options.get("bytes") or 0)) * int(str(flow.options.get("parallel") or 1))
        sizes.setdefault((slowest, most), {})[flow.name] = min(most, limit or most)
    packets: dict[str, float] = {}
    for (_, most), flows in sizes.items():
        share = min(1.0, most / (sum(flows.values()) or 1.0))
        packets |= {name: share * size / mtu * (1 + 1 / ACK_EVERY) for name, size in flows.items()}
    return packets
