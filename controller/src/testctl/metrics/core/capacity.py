# SPDX-License-Identifier: Apache-2.0
"""The capacity of a flow's path: the lowest rate that the point sets along it."""

from __future__ import annotations

from itertools import pairwise

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
    settings, way = point.settings, point.topology.path(flow.sender, flow.receiver)
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
