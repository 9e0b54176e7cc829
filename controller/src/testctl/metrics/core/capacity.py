# SPDX-License-Identifier: Apache-2.0
"""The capacity of a flow's path: the lowest rate that the point sets along it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from testctl.metrics.core.view import FlowView


def capacity_bps(flow: FlowView) -> float | None:
    """min of the sender's htb_rate and the `rate` of every switch port the data leaves by.

    None when nothing on the path has a rate.  A port's own setting goes before its switch's.
    """
    point = flow.records.point
    settings: Mapping[str, Mapping[str, Any]] = point.get("settings", {})
    way = path(point.get("topology", {}), flow.sender, flow.receiver)
    rates = [settings.get(flow.sender, {}).get("htb_rate")]
    if way:
        for switch, onward in pairwise(way[1:]):
            own = settings.get(f"{switch}:{onward}", {}).get("rate")
            rates.append(own if own is not None else settings.get(switch, {}).get("rate"))
    else:  # no topology: any port may be on the way
        rates += [given.get("rate") for entity, given in settings.items() if entity != flow.sender]
    known = [float(rate) for rate in rates if isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0]
    return min(known) if known else None


def path(topology: Mapping[str, Any], a: str, b: str) -> list[str]:
    """The entities from a to b, both included; [] when the topology does not link them."""
    neighbours: dict[str, list[str]] = {}
    for one, other in topology.get("links", []) if isinstance(topology, Mapping) else []:
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    came_from = {a: a}
    queue = [a]
    for name in queue:
        for neighbour in neighbours.get(name, []):
            if neighbour not in came_from:
                came_from[neighbour] = name
                queue.append(neighbour)
    if b not in came_from:
        return []
    way = [b]
    while way[-1] != a:
        way.append(came_from[way[-1]])
    return way[::-1]
