# SPDX-License-Identifier: Apache-2.0
"""Routes as the kernel lists and takes them.  Source: include/uapi/linux/rtnetlink.h."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from testctl_agent.network import netlink as nl

RTMSG = struct.Struct("=8BI")
DST, SRC, OIF, GATEWAY, PRIORITY, METRICS, MULTIPATH, CACHEINFO, VIA, NH_ID = 1, 2, 4, 5, 6, 8, 9, 12, 18, 30
"""Types of attributes."""
UNICAST = 1
ONLINK = 0x4
"""RTNH_F_ONLINK; the other flags of a nexthop say how the link is and can't be set."""
_CLONED = 0x200
_BY_ROUTER = 9
_EXPIRES = slice(8, 12)
"""Of struct rta_cacheinfo."""


@dataclass(frozen=True)
class Route:
    """A route.

    fields      struct rtmsg: family, length of the destination and of the source, TOS, table, protocol, scope, type
                and flags
    attributes  (type, payload), in order; of several nexthops' flags only ONLINK
    """

    fields: tuple[int, ...]
    attributes: tuple[tuple[int, bytes], ...]

    def get(self, kind: int, default: bytes = b"") -> bytes:
        return dict(self.attributes).get(kind, default)

    @property
    def metrics(self) -> dict[int, bytes]:
        return nl.parse(self.get(METRICS))

    @property
    def to(self) -> str:
        """Its destination, such as 10.0.0.0/16."""
        family = self.fields[0]
        anywhere = bytes(4 if family == socket.AF_INET else 16)
        return f"{socket.inet_ntop(family, self.get(DST, anywhere))}/{self.fields[1]}"

    @property
    def place(self) -> tuple[object, ...]:
        """The kernel replaces the first route with this, through whatever device."""
        return (*self.fields[:5], *map(self.get, (DST, SRC, PRIORITY)))

    @property
    def devices(self) -> set[bytes]:
        """The indices of the devices that it leaves by, as RTA_OIF holds them."""
        return {self.get(OIF), *(hop[4:8] for hop in _nexthops(self.get(MULTIPATH)))}

    @property
    def cloned(self) -> bool:
        """Whether the kernel made it of another, for one destination."""
        return bool(self.fields[8] & _CLONED)

    @property
    def stands(self) -> bool:
        """Whether an IPv6 route stands still: it is not of a router's advertisement, nor the kernel's for a time."""
        expires = any(self.get(CACHEINFO, bytes(12))[_EXPIRES])
        return self.fields[7] == UNICAST and self.fields[5] != _BY_ROUTER and not self.cloned and not expires


def _nexthops(data: bytes) -> Iterator[bytes]:
    """Each struct rtnexthop of RTA_MULTIPATH, with its attributes."""
    while data:
        length = int.from_bytes(data[:2], sys.byteorder)
        yield data[:2] + bytes([data[2] & ONLINK]) + data[3:length]
        data = data[length:]


def parse(payload: bytes) -> Route:
    known = nl.attributes(payload[RTMSG.size :])
    return Route(
        RTMSG.unpack_from(payload),
        tuple((kind, b"".join(_nexthops(data)) if kind == MULTIPATH else data) for kind, data in known),
    )


def listed(family: int) -> list[Route]:
    """All routes of an address family.  Raises TestbedError."""
    with nl.Netlink() as netlink:
        return list(map(parse, netlink.dump(nl.RTM_GETROUTE, RTMSG.pack(family, 0, 0, 0, 0, 0, 0, 0, 0))))


def through(devices: Iterable[str], family: int) -> list[Route]:
    """All routes of an address family that leave by one of the devices.  Raises TestbedError."""
    wanted = {struct.pack("=I", nl.index(device)) for device in devices}
    return [route for route in listed(family) if wanted & route.devices]
