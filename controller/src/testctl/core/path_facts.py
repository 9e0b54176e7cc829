# SPDX-License-Identifier: Apache-2.0
"""What a plan implies of a flow's path: base RTT, bottleneck, bandwidth-delay product, buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testctl_agent.params.flow.socket import IPV6
from testctl_agent.params.host import htb

from testctl.core.path import PathLink, changing, path_links, port_setting
from testctl.core.point import Point, PointFlow, is_background
from testctl.core.routes import ways
from testctl.core.units import show_metric, show_rate, show_time

HEADS = ("flow", "base RTT", "bottleneck", "BDP", "buffer")
"""Of the table whose rows are `path_rows`."""

_FRAME_BYTES = {True: 86, False: 66}
"""A packet without data over IPv6 or not: Ethernet, IP, TCP with timestamps."""


@dataclass(frozen=True)
class BasePath:
    """The path of a flow's data while nothing else is on it and its links are up.

    base_rtt_ns   round trip of a packet without data, as Linux's min_rtt: the delays of both ways, and sending it
    bottleneck    the link of the least rate on the data's way, the first of equal ones: a host or "switch:neighbour"
    rate_bps      its rate
    """

    base_rtt_ns: int
    bottleneck: str
    rate_bps: float


@dataclass(frozen=True)
class PathFacts(BasePath):
    """A base path and the buffer of its bottleneck.

    buffer_bytes  most that may wait there; None: the plan does not limit it
    """

    buffer_bytes: int | None

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product: the bytes on their way where nothing waits."""
        return self.rate_bps * self.base_rtt_ns / 8e9

    @property
    def buffer_bdp(self) -> float | None:
        """The buffer as a multiple of the bandwidth-delay product; None where that is 0."""
        bdp = self.bdp_bytes
        return self.buffer_bytes / bdp if self.buffer_bytes is not None and bdp else None

    def to_json(self) -> dict[str, Any]:
        return {
            "base_rtt_ns": self.base_rtt_ns,
            "bottleneck": self.bottleneck,
            "rate_bps": self.rate_bps,
            "bdp_bytes": round(self.bdp_bytes),
            "buffer_bytes": self.buffer_bytes,
            "buffer_bdp": self.buffer_bdp,
        }


def paths_of(points: Iterable[Point]) -> dict[str, tuple[PathFacts, ...]]:
    """Flow -> the facts of its paths in these points, each once; without the flows that have none."""
    paths: dict[str, dict[PathFacts, None]] = {}
    for point in points:
        for flow in point.flows:
            if not is_background(flow.name) and (facts := path_facts(point, flow)):
                paths.setdefault(flow.name, {})[facts] = None
    return {flow: tuple(several) for flow, several in paths.items()}


def path_rows(paths: Mapping[str, Sequence[PathFacts]]) -> list[list[str]]:
    """A table of paths in words, under HEADS: of several points the least and the greatest value.

    Flows whose paths are the same share a row.
    """
    flows: dict[tuple[str, ...], list[str]] = {}
    for flow, several in paths.items():
        places = ", ".join(dict.fromkeys(facts.bottleneck for facts in several))
        row = (
            _span(show_time, (facts.base_rtt_ns for facts in several)),
            f"{places}: {_span(show_rate, (facts.rate_bps for facts in several))}",
            _span(lambda size: show_metric("_bytes", size), (facts.bdp_bytes for facts in several)),
            _buffers(several),
        )
        flows.setdefault(row, []).append(flow)
    return [[", ".join(names), *row] for row, names in flows.items()]


def _span(show: Callable[[float], str], values: Iterable[float]) -> str:
    known = [*values]
    return " … ".join(dict.fromkeys(show(value) for value in (min(known), max(known)))) if known else ""


def _buffers(several: Sequence[PathFacts]) -> str:
    """In products, or in bytes where a product is 0; "no limit" too where a point has none."""
    limits = [facts.buffer_bytes for facts in several if facts.buffer_bytes is not None]
    products = [product for facts in several if (product := facts.buffer_bdp) is not None]
    text = _span(_in_bdp, products) or _span(lambda size: show_metric("_bytes", size), limits)
    return " … ".join(filter(None, [text, "no limit" if len(limits) < len(several) else ""]))


def _in_bdp(size: float) -> str:
    return f"{size:.0f} BDP" if size >= 100 else f"{size:.2g} BDP"


def path_facts(point: Point, flow: PointFlow) -> PathFacts | None:
    """None where there is no base path."""
    base = base_path(point, flow)
    return (
        PathFacts(base.base_rtt_ns, base.bottleneck, base.rate_bps, _buffer(point, base.bottleneck)) if base else None
    )


def base_path(point: Point, flow: PointFlow) -> BasePath | None:
    """None without a rate on the path, with a rate or delay that varies, or where the connections' paths differ."""
    links = path_links(point, flow, back=flow.reversed)
    limits = [(rate, link.name) for link in links if (rate := link.links[0].up_bps)]
    rtt_ns = base_rtt_ns(point, flow) if limits else None
    if rtt_ns is None:
        return None
    rate, place = min(limits, key=lambda limit: limit[0])
    return BasePath(rtt_ns, place, rate)


def base_rtt_ns(point: Point, flow: PointFlow) -> int | None:
    """As of BasePath, also without a rate; None where a rate or delay varies, or the connections' paths differ."""
    if any(changing(point, flow, back=back) or len(ways(point, flow, back=back)) > 1 for back in (False, True)):
        return None
    frame, both = _FRAME_BYTES[flow.family == IPV6], [path_links(point, flow, back=back) for back in (False, True)]
    return round(sum(links[0].lag_ns + _sending_ns(links, frame) for links in both))


def _sending_ns(links: Sequence[PathLink], frame: int) -> float:
    """How long the switches' ports send a frame; a host's limiter lets a single one go at once."""
    rates = [(link.links[0].up_bps, link.overhead) for link in links[1:]]
    return sum((frame + overhead) * 8e9 / rate for rate, overhead in rates if rate)


def _buffer(point: Point, place: str) -> int | None:
    switch, _, onward = place.partition(":")
    if onward:
        value = port_setting(point, switch, onward, "buffer")
    else:
        value = point.settings.get(place, {}).get("htb_buffer", htb.DEFAULT_BUFFER)
    return None if value in (None, "none") else int(str(value))
