# SPDX-License-Identifier: Apache-2.0
"""The initial congestion window: a metric of the host's routes through its devices.

Of IPv6's only permanent ones, without link-local addresses, over which no flow goes.
"""

from __future__ import annotations

import socket
import struct
from ipaddress import IPv6Address

from testctl_agent.network import netlink as nl
from testctl_agent.network import routes
from testctl_agent.network.routes import Route
from testctl_agent.params.entity import Entity
from testctl_agent.params.types import OrNone
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Int, Value

SPEC = ParamSpec(
    name="initcwnd",
    kind="host",
    help="Initial congestion window in segments; none: the kernel's own (10)",
    type=OrNone(Int(1, 1000, "segments")),
)

_MAIN_TABLE = 254
_OF_NEXTHOP = (routes.OIF, routes.GATEWAY, routes.VIA, routes.MULTIPATH)
"""Attributes that the kernel shows of a route's nexthop object, and refuses together with it."""
_RTAX_INITCWND = 11


def value_of(route: Route) -> Value:
    data = route.metrics.get(_RTAX_INITCWND)
    return struct.unpack("=I", data)[0] if data else "none"


def with_initcwnd(route: Route, value: Value) -> bytes:
    """The request's payload that sets the metric of a route and keeps everything else."""
    metrics = {kind: data for kind, data in route.metrics.items() if kind != _RTAX_INITCWND}
    if value != "none":
        metrics[_RTAX_INITCWND] = struct.pack("=I", int(value))
    has_object = bool(route.get(routes.NH_ID))
    if has_object and not metrics:  # without any the kernel takes the metrics that the route has
        metrics[_RTAX_INITCWND] = bytes(4)
    left_out = (routes.METRICS, routes.CACHEINFO, *(_OF_NEXTHOP if has_object else ()))
    kept = [nl.attr(kind, data) for kind, data in route.attributes if kind not in left_out]
    if metrics:
        kept.append(nl.attr(routes.METRICS, b"".join(nl.attr(kind, data) for kind, data in metrics.items())))
    flags = 0 if has_object else route.fields[8] & routes.ONLINK
    return routes.RTMSG.pack(*route.fields[:8], flags) + b"".join(kept)


def _routes(entity: Entity) -> list[Route]:
    """Unicast routes of the main table that leave through the entity's devices."""
    candidates = routes.through(entity.devices, socket.AF_INET)
    for route in routes.through(entity.devices, socket.AF_INET6):
        if route.stands and not IPv6Address(route.get(routes.DST, bytes(16))).is_link_local:
            candidates.append(route)
    return [r for r in candidates if (r.fields[4], r.fields[7]) == (_MAIN_TABLE, routes.UNICAST) and not r.cloned]


def read(entity: Entity, name: str) -> Value:
    values = [value_of(route) for route in _routes(entity)]
    return values[0] if len(set(values)) == 1 else " ".join(str(value) for value in values) or "none"


def apply(entity: Entity, name: str, value: Value) -> None:
    """Set it on every route; a text of several numbers, as `read` gives them, is one for each route."""
    present = _routes(entity)
    values: list[Value] = list(value.split()) if isinstance(value, str) else [value]
    each = values * len(present) if len(values) == 1 else values
    if not present or len(each) != len(present):
        why = f"got {len(present)} routes through {', '.join(entity.devices) or 'no device'}"
        raise entity.refuse(name, value, why)
    try:
        with nl.Netlink() as netlink:
            for route, wanted in zip(present, each, strict=True):
                netlink.request(nl.RTM_NEWROUTE, nl.NLM_F_REPLACE, with_initcwnd(route, wanted))
    except TestbedError as error:
        raise entity.refuse(name, value, error) from error


def unavailable(entity: Entity, name: str) -> str:
    own = _routes(entity)
    places = [route.place for family in (socket.AF_INET, socket.AF_INET6) for route in routes.listed(family)]
    if twins := [route.to for route in own if places.count(route.place) > 1]:
        return f"{twins[0]} has two routes of one metric, of which the kernel would replace the first"
    return "" if own else f"no route through {', '.join(entity.devices) or 'any device'}"
