# SPDX-License-Identifier: Apache-2.0
"""The initial congestion window: a metric of the host's IPv4 routes through its devices."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from testctl_agent.network import netlink as nl
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

_RTMSG = struct.Struct("=8BI")
_MAIN_TABLE, _UNICAST, _CLONED = 254, 1, 0x200
_KEPT_FLAGS = 0x4  # RTNH_F_ONLINK; the others say how the link is and can't be set
_RTA_OIF, _RTA_GATEWAY, _RTA_METRICS, _RTA_CACHEINFO, _RTA_VIA, _RTA_NH_ID = 4, 5, 8, 12, 18, 30
_OF_NEXTHOP = (_RTA_OIF, _RTA_GATEWAY, _RTA_VIA)
"""What the kernel shows of a route's nexthop object, and refuses beside it."""
_RTAX_INITCWND = 11


@dataclass(frozen=True)
class _Route:
    header: bytes
    attributes: tuple[tuple[int, bytes], ...]

    @property
    def metrics(self) -> dict[int, bytes]:
        return nl.parse(dict(self.attributes).get(_RTA_METRICS, b""))

    @property
    def initcwnd(self) -> Value:
        data = self.metrics.get(_RTAX_INITCWND)
        return struct.unpack("=I", data)[0] if data else "none"

    def with_initcwnd(self, value: Value) -> bytes:
        """The request's payload that sets the metric and keeps everything else."""
        metrics = {kind: data for kind, data in self.metrics.items() if kind != _RTAX_INITCWND}
        if value != "none":
            metrics[_RTAX_INITCWND] = struct.pack("=I", int(value))
        has_object = _RTA_NH_ID in dict(self.attributes)
        if has_object and not metrics:  # without any the kernel takes the metrics that the route has
            metrics[_RTAX_INITCWND] = bytes(4)
        left_out = (_RTA_METRICS, _RTA_CACHEINFO, *(_OF_NEXTHOP if has_object else ()))
        kept = [nl.attr(kind, data) for kind, data in self.attributes if kind not in left_out]
        if metrics:
            kept.append(nl.attr(_RTA_METRICS, b"".join(nl.attr(kind, data) for kind, data in metrics.items())))
        fields = _RTMSG.unpack(self.header)
        return _RTMSG.pack(*fields[:8], 0 if has_object else fields[8] & _KEPT_FLAGS) + b"".join(kept)


def _routes(entity: Entity) -> list[_Route]:
    """Unicast routes of the main table that leave through the entity's devices."""
    wanted = {nl.index(device) for device in entity.devices}
    with nl.Netlink() as netlink:
        answers = netlink.dump(nl.RTM_GETROUTE, _RTMSG.pack(2, 0, 0, 0, 0, 0, 0, 0, 0))
    found = []
    for answer in answers:
        fields = _RTMSG.unpack_from(answer)
        route = _Route(answer[: _RTMSG.size], tuple(nl.attributes(answer[_RTMSG.size :])))
        out = dict(route.attributes).get(_RTA_OIF, bytes(4))
        if fields[4] == _MAIN_TABLE and fields[7] == _UNICAST and not fields[8] & _CLONED:
            found += [route] if struct.unpack("=I", out)[0] in wanted else []
    return found


def read(entity: Entity, name: str) -> Value:
    values = [route.initcwnd for route in _routes(entity)]
    return values[0] if len(set(values)) == 1 else " ".join(str(value) for value in values) or "none"


def apply(entity: Entity, name: str, value: Value) -> None:
    """Set it on every route; a text of several numbers, as `read` gives them, is one for each route."""
    routes = _routes(entity)
    words: list[Value] = list(value.split()) if isinstance(value, str) else [value]
    each = words * len(routes) if len(words) == 1 else words
    if not routes or len(each) != len(routes):
        raise entity.refuse(name, value, f"got {len(routes)} routes through {', '.join(entity.devices) or 'no device'}")
    try:
        with nl.Netlink() as netlink:
            for route, wanted in zip(routes, each, strict=True):
                netlink.request(nl.RTM_NEWROUTE, nl.NLM_F_REPLACE, route.with_initcwnd(wanted))
    except TestbedError as error:
        raise entity.refuse(name, value, error) from error


def unavailable(entity: Entity, name: str) -> str:
    return "" if _routes(entity) else f"no IPv4 route through {', '.join(entity.devices) or 'any device'}"
