# SPDX-License-Identifier: Apache-2.0
"""The capacity of a flow's path: the lowest rate that the point sets along it."""

from __future__ import annotations

from testctl.core import path
from testctl.metrics.core.view import FlowView, view
from testctl.records import Records


def capacity_bps(flow: FlowView) -> float | None:
    """The least rate of the flow's path, of one that changes the mean; None when nothing on it has a rate."""
    return min(path_rates(flow).values(), default=None)


def rated_links(records: Records) -> dict[str, tuple[list[str], float]]:
    """{host or port with a rate: (the flows whose data leaves by it, its rate in bit/s)}."""
    found: dict[str, tuple[list[str], float]] = {}
    for name in records.plans_flows:
        for link, rate in path_rates(view(records, name)).items():
            found.setdefault(link, ([], rate))[0].append(name)
    return found


def path_rates(flow: FlowView) -> dict[str, float]:
    """The rates in bit/s that the point sets on the path of a flow's data, by what has them."""
    return path.path_rates(flow.records.point, flow.asked, back=flow.direction == 1)
