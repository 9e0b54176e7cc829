# SPDX-License-Identifier: Apache-2.0
"""The capacity of a flow's path: the lowest rate that the point sets along it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from testctl.metrics.core.view import FlowView, view
from testctl.records import Records


def capacity_bps(flow: FlowView) -> float | None:
    """The least rate of the flow's path; None when nothing on it has a rate."""
    return min(path_rates(flow).values(), default=None)


def rated_links(records: Records) -> dict[str, tuple[list[str], float]]:
    """{host or port with a rate: (the flows whose data leaves by it, its rate in bit/s)}."""
    found: dict[str, tuple[list[str], float]] = {}
    for name in records.flows:
        for link, rate in path_rates(view(records, name)).items():
            found.setdefault(link, ([], rate))[0].append(name)
    return found


def path_rates(flow: FlowView) -> dict[str, float]:
    """The rates in bit/s that the point sets on a flow's path, by what has them: the sender's htb_rate and the
    `rate` of every switch port that the data leaves by.

    A port's own setting goes before its switch's.
    """
    point = flow.records.point
    settings: Mapping[str, Mapping[str, Any]] = point.get("settings", {})
    way = path(point.get("topology", {}), flow.sender, flow.receiver)
    rates = {flow.sender: settings.get(flow.sender, {}).get("htb_rate")}
    if way:
        for switch, onward in pairwise(way[1:]):
            own = settings.get(f"{switch}:{onward}", {}).get("rate")
            rates[f"{switch}:{onward}"] = own if own is not None else settings.get(switch, {}).get("rate")
    else:  # no topology: any port may be on the way
        rates |= {entity: given.get("rate") for entity, given in settings.items() if entity != flow.sender}
    return {
        link: float(rate)
        for link, rate in rates.items()
        if isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0
    }


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
