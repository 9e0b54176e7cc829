# SPDX-License-Identifier: Apache-2.0
"""What a point sets along a path: rates, delays, and how long an empty path takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from testctl_agent.params.flow.socket import IPV6
from testctl_agent.spec import schedule, trace
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Duration

from testctl.core import routes
from testctl.core.point import Point, PointFlow

TIMESTAMPS = "net.ipv4.tcp_timestamps"
_ETHERNET = 14
_TIMESTAMP = 12


def path_rates(point: Point, flow: PointFlow, *, back: bool = False) -> dict[str, float]:
    """The rates in bit/s that a point sets on a flow's path from its `from` to its `to`, or back, by what has them: the
    sender's htb_rate and the `rate` of every switch port that packets leave by.

    A port's own setting goes before its switch's.  Of a rate that changes it is the mean over the point.  Ports among
    which the flow's connections are spread are "a:b + a:c": the sum of their rates, if each has one.
    """
    settings, sender = point.settings, flow.ends[back]
    rates = {sender: _bps(point, settings.get(sender, {}).get("htb_rate"))}
    for hop in routes.hops(point, flow, back=back):
        of_hop = [_bps(point, port_setting(point, *link, "rate")) for link in hop]
        rates[" + ".join(f"{switch}:{onward}" for switch, onward in hop)] = sum(of_hop) if all(of_hop) else 0.0
    if len(rates) == 1 and not point.topology.links:  # no topology: any port may be on the way
        rates |= {entity: _bps(point, given.get("rate")) for entity, given in settings.items() if entity != sender}
    return {link: bps for link, bps in rates.items() if bps > 0}


def _bps(point: Point, rate: Value | None) -> float:
    """0: none."""
    return schedule.mean_bps(rate, point.duration_ns) or 0.0


def path_delay_ns(point: Point, way: Sequence[str]) -> int:
    """The one-way delays that a point sets on a way, together; of one that changes the least."""
    return sum(
        min(step.value or 0 for step in schedule.steps_of(delay, Duration)) for delay in _along(point, way, "delay")
    )


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
    """What a path takes without other traffic.

    delay_ns   one way
    rate_bps   the least one
    segment    payload of a packet at most, bytes
    overhead   bytes that each packet takes of the link of that rate besides: all headers from Ethernet on, and framing
    """

    delay_ns: int
    rate_bps: float
    segment: int
    overhead: int


def empty_path(point: Point, flow: PointFlow, *, back: bool = False) -> EmptyPath | None:
    """That of a flow's connections from its `from` to its `to`, or back.  None where no rate is set on it, one of its
    rates or delays changes, or the ways of several connections differ.
    """
    if changing(point, flow, back=back):
        return None
    found = {_empty(point, flow, way, back=back) for way in routes.ways(point, flow, back=back)}
    return found.pop() if len(found) == 1 else None


def _empty(point: Point, flow: PointFlow, way: Sequence[str], *, back: bool) -> EmptyPath | None:
    sender = flow.ends[back]
    rates = {sender: _bps(point, point.settings.get(sender, {}).get("htb_rate"))}
    rates |= {
        f"{switch}:{to}": _bps(point, port_setting(point, switch, to, "rate")) for switch, to in pairwise(way[1:])
    }
    if not any(rates.values()):
        return None
    link = min((name for name in rates if rates[name]), key=lambda name: rates[name])
    hosts = [point.settings.get(end, {}) for end in flow.ends]
    headers = (60 if flow.family == IPV6 else 40) + (_TIMESTAMP if _timestamps(*hosts) else 0)
    segment = min(int(host.get("mtu", 1500)) for host in hosts) - headers
    switch, _, onward = link.partition(":")
    framing = port_setting(point, switch, onward, "framing") if onward else 0
    extra = int(framing or 0) if _is_number(framing) else 0
    return EmptyPath(path_delay_ns(point, way), rates[link], segment, _ETHERNET + headers + extra)


def _timestamps(*hosts: Mapping[str, Value]) -> bool:
    return all(str(host.get(TIMESTAMPS, 1)) != "0" for host in hosts)


def _along(point: Point, way: Sequence[str], name: str) -> Iterator[Value | None]:
    for switch, onward in pairwise(way[1:]):
        yield port_setting(point, switch, onward, name)


def port_setting(point: Point, switch: str, onward: str, name: str) -> Value | None:
    """A parameter of a switch's port toward a neighbour: the port's own, or else the switch's."""
    own = point.settings.get(f"{switch}:{onward}", {}).get(name)
    return own if own is not None else point.settings.get(switch, {}).get(name)


def _is_number(value: Value | None) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
