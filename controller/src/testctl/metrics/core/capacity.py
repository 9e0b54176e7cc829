# SPDX-License-Identifier: Apache-2.0
"""What the links of flows' paths could carry while these were active, and what share of it they used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testctl_agent.spec import trace

from testctl.core.path import PathLink, path_links
from testctl.metrics.core.spec import NAN
from testctl.metrics.core.view import FlowView

Share = tuple[float, float]
"""The least and the greatest share of a link that agrees with what arrived at the receiver."""
_UNSURE = 0.05
"""Relative difference of these that still gives a number."""


def links_of(flow: FlowView) -> list[PathLink]:
    """Those that a flow's data leaves by, with a rate or without."""
    return path_links(flow.records.point, flow.requested, back=flow.direction == 1)


def capacity_bps(flow: FlowView) -> float:
    """The least rate of a flow's links: of one that changes the mean over the active time, or where that is an instant
    the rate then.  NaN without a limit, and where nothing arrived and a link changes.
    """
    links = links_of(flow)
    if not len(flow.arrived) and any(link.changes for link in links):
        return NAN
    return min((rate for link in links if (rate := link.mean_bps(*flow.active_ns))), default=NAN)


def share_of(links: Sequence[PathLink], bits: float, active_ns: tuple[int, int], frame: int) -> Share | None:
    """The share of the first of these links, which follow each other on a path, that so many bits are.

    bits     that arrived at the receiver after the first packet, as the link counts them
    frame    bytes of the largest packet: so long may the first one have waited for itself at later links, which
             the receiver sees as less time between it and the last one, besides a ns by which times are rounded; so
             much may be on its way, at another rate, when a rate changes, and pass by a trace's opportunity before
    None without a limit.
    """
    link, later = links[0], links[1:]
    start, end = active_ns
    rate = link.mean_bps(start, end)
    if not rate or end <= start:
        return None
    hidden_ns = 1 + sum(frame * 8e9 / other for after in later if (other := after.mean_bps(start, end)))
    spare = 8 * (frame + link.overhead) if link.changes else 0
    spare += 8 * trace.OPPORTUNITY_BYTES if any(trace.is_trace(one.rate) for one in link.links) else 0
    return bits * 1e9 / (rate * (end - start + hidden_ns) + spare * 1e9), bits * 1e9 / (rate * (end - start))


def most_used(shares: Iterable[Share | None]) -> float:
    """The share of the most used link: more than 1 only by a burst.  NaN without any, and for a time so short that
    the share is not known.
    """
    known = [share for share in shares if share is not None]
    least, greatest = (max(ends, default=NAN) for ends in zip(*known, strict=True)) if known else (NAN, NAN)
    return min(greatest, max(least, 1.0)) if greatest <= least * (1 + _UNSURE) else NAN
