# SPDX-License-Identifier: Apache-2.0
"""Rates and delays of a point along a path, and the delay of the empty path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from testctl_agent.params.flow.socket import IPV6
from testctl_agent.spec import schedule, trace
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Duration

from testctl.core import routes
from testctl.core.capacity import Link
from testctl.core.point import Point, PointFlow

TIMESTAMPS = "net.ipv4.tcp_timestamps"
_ETHERNET = 14
_TIMESTAMP = 12
_OF_LINK = ("rate", "down", "aqm", "framing")


@dataclass(frozen=True)
class PathLink:
    """A link with a rate on a flow's path: a host's, or the ports that share the flow's connections.

    name    "sender", "switch:receiver", or "a:b + a:c"
    lag_ns  least delay from it to the end of the path
    """

    name: str
    links: tuple[Link, ...]
    lag_ns: int

    @property
    def changes(self) -> bool:
        return any(link.constant_bps is None for link in self.links)

    @property
    def overhead(self) -> int:
        """Bytes counted for each packet in addition to the Ethernet frame; the least of several ports."""
        return min(link.overhead for link in self.links)

    def mean_bps(self, start_ns: int, end_ns: int) -> float | None:
        """The mean rate at the end of the path between two times, summed over ports; None: unlimited."""
        rates = [link.mean_bps(start_ns - self.lag_ns, end_ns - self.lag_ns) for link in self.links]
        return sum(rate for rate in rates if rate) if None not in rates else None


def path_links(point: Point, flow: PointFlow, *, back: bool = False) -> list[PathLink]:
    """The sender and all ports that packets leave by from a flow's `from` to its `to`, or back, in order.

    A port's own setting goes before its switch's.
    """
    settings, sender = point.settings, flow.ends[back]
    hops = routes.hops(point, flow, back=back)
    delays = [min(_least(port_setting(point, *port, "delay")) for port in hop) for hop in hops]
    links = [PathLink(sender, (Link.of({"htb_rate": settings.get(sender, {}).get("htb_rate")}),), sum(delays))]
    for place, hop in enumerate(hops):
        name = " + ".join(f"{switch}:{onward}" for switch, onward in hop)
        links.append(PathLink(name, tuple(port_link(point, *port) for port in hop), sum(delays[place:])))
    if len(links) == 1 and not point.topology.links:  # no topology: any port may be on the way
        links += [
            PathLink(entity, (Link.of({name: values.get(name) for name in _OF_LINK}),), 0)
            for entity, values in settings.items()
            if entity != sender
        ]
    return links


def path_rates(point: Point, flow: PointFlow, *, back: bool = False) -> dict[str, float]:
    """Link on a flow's path → its rate in bit/s; of a varying rate the mean over the point, 0 if it is always down."""
    links = path_links(point, flow, back=back)
    rates = {link.name: link.mean_bps(link.lag_ns, link.lag_ns + point.duration_ns) for link in links}
    return {name: rate for name, rate in rates.items() if rate is not None}


def port_link(point: Point, switch: str, onward: str) -> Link:
    return Link.of({name: port_setting(point, switch, onward, name) for name in _OF_LINK})


def path_delay_ns(point: Point, way: Sequence[str]) -> int:
    """The sum of the one-way delays on a way; of a varying delay the least."""
    return sum(_least(delay) for delay in _along(point, way, "delay"))


def least_delay_ns(point: Point, switch: str, onward: str) -> int:
    """The delay of a switch's port toward a neighbour; of a varying delay the least."""
    return _least(port_setting(point, switch, onward, "delay"))


def _least(delay: Value | None) -> int:
    return min(step.value or 0 for step in schedule.steps_of(delay, Duration))


def changing(point: Point, flow: PointFlow, *, back: bool = False) -> list[str]:
    """The rates and delays of a flow's path that change by a schedule or a trace."""
    return [
        name
        for name in ("rate", "delay")
        for way in routes.ways(point, flow, back=back)
        for value in _along(point, way, name)
        if schedule.is_schedule(value) or trace.is_trace(value)
    ]


@dataclass(frozen=True)
class EmptyPath:
    """Delay and rate of a path without other traffic.

    delay_ns   one way
    rate_bps   the least rate
    segment    greatest payload of a packet, bytes
    overhead   bytes that each packet takes of the link of that rate besides: all headers from Ethernet on, and framing
    """

    delay_ns: int
    rate_bps: float
    segment: int
    overhead: int


def empty_path(point: Point, flow: PointFlow, *, back: bool = False) -> EmptyPath | None:
    """The empty path of a flow's connections, forward or back.  None without a rate, with a rate or delay that varies,
    or if the connections' paths differ.
    """
    if changing(point, flow, back=back):
        return None
    paths = {_empty(point, flow, way, back=back) for way in routes.ways(point, flow, back=back)}
    return paths.pop() if len(paths) == 1 else None


def _empty(point: Point, flow: PointFlow, way: Sequence[str], *, back: bool) -> EmptyPath | None:
    links = [Link(point.settings.get(flow.ends[back], {}).get("htb_rate"))]
    links += [
        Link(port_setting(point, *port, "rate"), framing=port_link(point, *port).framing) for port in pairwise(way[1:])
    ]
    rates = [(rate, link.framing) for link in links if (rate := link.constant_bps)]
    if not rates:
        return None
    rate, framing = min(rates, key=lambda pair: pair[0])
    hosts = [point.settings.get(end, {}) for end in flow.ends]
    headers = (60 if flow.family == IPV6 else 40) + (_TIMESTAMP if _timestamps(*hosts) else 0)
    segment = min(int(host.get("mtu", 1500)) for host in hosts) - headers
    return EmptyPath(path_delay_ns(point, way), rate, segment, _ETHERNET + headers + framing)


def _timestamps(*hosts: Mapping[str, Value]) -> bool:
    return all(str(host.get(TIMESTAMPS, 1)) != "0" for host in hosts)


def _along(point: Point, way: Sequence[str], name: str) -> Iterator[Value | None]:
    for switch, onward in pairwise(way[1:]):
        yield port_setting(point, switch, onward, name)


def port_setting(point: Point, switch: str, onward: str, name: str) -> Value | None:
    """A parameter of a switch's port toward a neighbour: the port's, else the switch's."""
    own = point.settings.get(f"{switch}:{onward}", {}).get(name)
    return own if own is not None else point.settings.get(switch, {}).get(name)
