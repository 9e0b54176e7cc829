# SPDX-License-Identifier: Apache-2.0
"""What the links of flows' paths could carry while these were active."""

from __future__ import annotations

from collections.abc import Iterable

from testctl.core.path import PathLink, path_links
from testctl.metrics.core.view import FlowView


def links_of(flow: FlowView) -> list[PathLink]:
    """Those that a flow's data leaves by, with a rate or without."""
    return path_links(flow.records.point, flow.requested, back=flow.direction == 1)


def capacities_bps(links: Iterable[PathLink], active_ns: tuple[int, int]) -> list[tuple[PathLink, float]]:
    """Links that have a limit, and the mean rate of each over a time at the receiver; where none passed, of those
    alone whose rate does not change.
    """
    start, end = active_ns
    rates = ((link, link.mean_bps(start, end)) for link in links if end > start or not link.changes)
    return [(link, rate) for link, rate in rates if rate]
