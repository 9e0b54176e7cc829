# SPDX-License-Identifier: Apache-2.0
"""Paths of a flow's connections in topologies with several of equal cost.

A switch gives each connection one of them by a hash (testctl_agent/spec/ecmp.py), which is computed here as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from testctl_agent.spec import ecmp

from testctl.core.point import Point, PointFlow

SEED = "ecmp_seed"


def way(point: Point, flow: PointFlow, conn: int, *, back: bool = False) -> tuple[str, ...]:
    """The entities on the path of a connection, from the flow's `from` to its `to`, or back; () if there is no path."""
    topology, (start, end) = point.topology, flow.ends[::-1] if back else flow.ends
    if not topology.ecmp:
        return tuple(topology.path(start, end))
    ports = (flow.server_port, flow.client_port + conn) if back else (flow.client_port + conn, flow.server_port)
    addresses = [topology.address(host, flow.family) for host in (start, end)]
    source, sink = zip(addresses, ports, strict=True)
    nodes = [start, topology.neighbours[start][0]]
    while nodes[-1] != end:
        hops = topology.next_hops(nodes[-1])[end]
        seed = int(point.settings.get(nodes[-1], {}).get(SEED, 0))
        place = ecmp.way(ecmp.draw(ecmp.salt_of(seed), source, sink), len(hops)) if len(hops) > 1 else 0
        nodes.append(hops[place])
    return tuple(nodes)


def ways(point: Point, flow: PointFlow, *, back: bool = False) -> dict[tuple[str, ...], list[int]]:
    """Path → the connections of the flow that take it."""
    if not point.topology.ecmp:
        return {way(point, flow, 0, back=back): list(range(flow.parallel))}
    routes: dict[tuple[str, ...], list[int]] = {}
    for conn in range(flow.parallel):
        routes.setdefault(way(point, flow, conn, back=back), []).append(conn)
    return routes


def hops(point: Point, flow: PointFlow, *, back: bool = False) -> list[dict[tuple[str, str], list[int]]]:
    """For each hop from a switch, in order: (switch, neighbour) -> its connections.

    Paths of equal cost have equally many hops.  [] if the ends are not linked.
    """
    levels: list[dict[tuple[str, str], list[int]]] = []
    for route, conns in ways(point, flow, back=back).items():
        for place, hop in enumerate(pairwise(route[1:])):
            if place == len(levels):
                levels.append({})
            levels[place].setdefault(hop, []).extend(conns)
    return levels


def switches(point: Point, flow: PointFlow, *, back: bool = False) -> Iterator[str]:
    """The switches that a connection of the flow passes, each once, in order of the way."""
    return iter(dict.fromkeys(switch for hop in hops(point, flow, back=back) for switch, _ in hop))
