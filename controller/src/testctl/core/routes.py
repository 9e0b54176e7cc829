# SPDX-License-Identifier: Apache-2.0
"""The ways that a flow's connections take where a topology has several of equal cost.

A switch gives each connection one of them by a hash (testctl_agent/spec/ecmp.py), which is computed here as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from testctl_agent.spec import ecmp

from testctl.core.point import Point, PointFlow

SEED = "ecmp_seed"


def way(point: Point, flow: PointFlow, conn: int, *, back: bool = False) -> tuple[str, ...]:
    """The entities that packets of a connection pass, from the flow's `from` to its `to`, or back; () when nothing
    links them.
    """
    topology, (start, end) = point.topology, flow.ends[::-1] if back else flow.ends
    if not topology.ecmp:
        return tuple(topology.path(start, end))
    ports = (flow.server_port, flow.client_port + conn) if back else (flow.client_port + conn, flow.server_port)
    addresses = [topology.address(host, flow.family) for host in (start, end)]
    source, sink = zip(addresses, ports, strict=True)
    found = [start, topology.neighbours[start][0]]
    while found[-1] != end:
        hops = topology.next_hops(found[-1])[end]
        seed = int(point.settings.get(found[-1], {}).get(SEED, 0))
        place = ecmp.way(ecmp.draw(ecmp.salt_of(seed), source, sink), len(hops)) if len(hops) > 1 else 0
        found.append(hops[place])
    return tuple(found)


def ways(point: Point, flow: PointFlow, *, back: bool = False) -> dict[tuple[str, ...], list[int]]:
    """Each way that a connection of the flow takes, and which do."""
    if not point.topology.ecmp:
        return {way(point, flow, 0, back=back): list(range(flow.parallel))}
    found: dict[tuple[str, ...], list[int]] = {}
    for conn in range(flow.parallel):
        found.setdefault(way(point, flow, conn, back=back), []).append(conn)
    return found


def hops(point: Point, flow: PointFlow, *, back: bool = False) -> list[dict[tuple[str, str], list[int]]]:
    """Of each hop from a switch on, in order: (switch, neighbour) -> the connections that pass there.

    Equal ways have as many hops.  [] when nothing links the flow's ends.
    """
    found: list[dict[tuple[str, str], list[int]]] = []
    for one, conns in ways(point, flow, back=back).items():
        for place, hop in enumerate(pairwise(one[1:])):
            if place == len(found):
                found.append({})
            found[place].setdefault(hop, []).extend(conns)
    return found


def switches(point: Point, flow: PointFlow, *, back: bool = False) -> Iterator[str]:
    """The switches that a connection of the flow passes, each once, in order of the way."""
    return iter(dict.fromkeys(switch for hop in hops(point, flow, back=back) for switch, _ in hop))
