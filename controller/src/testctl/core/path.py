# SPDX-License-Identifier: Apache-2.0
"""What a point sets along a path: rates, delays, and how long an empty path takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from testctl_agent.params.flow.socket import IPV6
from testctl_agent.spec import schedule, trace
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Duration

from testctl.core.point import Point, PointFlow

TIMESTAMPS = "net.ipv4.tcp_timestamps"
_ETHERNET = 14
_TIMESTAMP = 12


def path_rates(point: Point, sender: str, receiver: str) -> dict[str, float]:
    """The rates in bit/s that a point sets on a path, by what has them: the sender's htb_rate and the `rate` of every
    switch port that data leaves by.

    A port's own setting goes before its switch's.  Of a rate that changes it is the mean over the point.
    """
    settings, way = point.settings, point.topology.path(sender, receiver)
    rates = {sender: settings.get(sender, {}).get("htb_rate")}
    if way:
        rates |= {
            f"{switch}:{onward}": port_setting(point, switch, onward, "rate") for switch, onward in pairwise(way[1:])
        }
    else:  # no topology: any port may be on the way
        rates |= {entity: given.get("rate") for entity, given in settings.items() if entity != sender}
    return {link: bps for link, rate in rates.items() if (bps := schedule.mean_bps(rate, point.duration_ns) or 0.0) > 0}


def path_delay_ns(point: Point, sender: str, receiver: str) -> int:
    """The one-way delays that a point sets on a path, together; of one that changes the least."""
    return sum(
        min(step.value or 0 for step in schedule.steps_of(delay, Duration))
        for delay in _along(point, sender, receiver, "delay")
    )


def changing(point: Point, sender: str, receiver: str) -> list[str]:
    """The rates and delays of a path that change by a schedule or a trace."""
    return [
        name
        for name in ("rate", "delay")
        for value in _along(point, sender, receiver, name)
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


def empty_path(point: Point, flow: PointFlow, sender: str, receiver: str) -> EmptyPath | None:
    """That of a flow from one of its ends to the other.  None where no rate is set on it, or one of its rates or
    delays changes."""
    rates = path_rates(point, sender, receiver)
    if not rates or changing(point, sender, receiver):
        return None
    link = min(rates, key=lambda name: rates[name])
    hosts = [point.settings.get(end, {}) for end in flow.ends]
    headers = (60 if flow.family == IPV6 else 40) + (_TIMESTAMP if _timestamps(*hosts) else 0)
    segment = min(int(host.get("mtu", 1500)) for host in hosts) - headers
    switch, _, onward = link.partition(":")
    framing = port_setting(point, switch, onward, "framing") if onward else 0
    extra = int(framing or 0) if _is_number(framing) else 0
    return EmptyPath(path_delay_ns(point, sender, receiver), rates[link], segment, _ETHERNET + headers + extra)


def _timestamps(*hosts: Mapping[str, Value]) -> bool:
    return all(str(host.get(TIMESTAMPS, 1)) != "0" for host in hosts)


def _along(point: Point, sender: str, receiver: str, name: str) -> Iterator[Value | None]:
    for switch, onward in pairwise(point.topology.path(sender, receiver)[1:]):
        yield port_setting(point, switch, onward, name)


def port_setting(point: Point, switch: str, onward: str, name: str) -> Value | None:
    """A parameter of a switch's port toward a neighbour: the port's own, or else the switch's."""
    own = point.settings.get(f"{switch}:{onward}", {}).get(name)
    return own if own is not None else point.settings.get(switch, {}).get(name)


def _is_number(value: Value | None) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
