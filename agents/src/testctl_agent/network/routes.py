# SPDX-License-Identifier: Apache-2.0
"""Routes as the kernel lists and takes them.  Source: include/uapi/linux/rtnetlink.h."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from testctl_agent.network import netlink as nl

RTMSG = struct.Struct("=8BI")
DST, OIF, GATEWAY, METRICS, CACHEINFO, VIA, NH_ID = 1, 4, 5, 8, 12, 18, 30
"""Types of attributes."""
UNICAST = 1
_CLONED = 0x200
_BY_ROUTER = 9
_EXPIRES = slice(8, 12)
"""Of struct rta_cacheinfo."""


@dataclass(frozen=True)
class Route:
    """A route.

    fields      struct rtmsg: family, length of the destination and of the source, TOS, table, protocol, scope, type
                and flags
    attributes  (type, payload), in order
    """

    fields: tuple[int, ...]
    attributes: tuple[tuple[int, bytes], ...]

    def get(self, kind: int, default: bytes = b"") -> bytes:
        return dict(self.attributes).get(kind, default)

    @property
    def metrics(self) -> dict[int, bytes]:
        return nl.parse(self.get(METRICS))

    @property
    def cloned(self) -> bool:
        """Whether the kernel made it of another, for one destination."""
        return bool(self.fields[8] & _CLONED)

    @property
    def stands(self) -> bool:
        """Whether an IPv6 route stands still: it is not of a router's advertisement, nor the kernel's for a time."""
        expires = any(self.get(CACHEINFO, bytes(12))[_EXPIRES])
        return self.fields[7] == UNICAST and self.fields[5] != _BY_ROUTER and not self.cloned and not expires


def parse(payload: bytes) -> Route:
    return Route(RTMSG.unpack_from(payload), tuple(nl.attributes(payload[RTMSG.size :])))


def through(devices: Iterable[str], family: int) -> list[Route]:
    """All routes of an address family that leave by one of the devices.  Raises TestbedError."""
    wanted = {struct.pack("=I", nl.index(device)) for device in devices}
    with nl.Netlink() as netlink:
        answers = netlink.dump(nl.RTM_GETROUTE, RTMSG.pack(family, 0, 0, 0, 0, 0, 0, 0, 0))
    return [route for route in map(parse, answers) if route.get(OIF) in wanted]
