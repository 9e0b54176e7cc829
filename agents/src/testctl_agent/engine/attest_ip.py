# SPDX-License-Identifier: Apache-2.0
"""A device's addresses and routes, IPv4 and IPv6, as text.

What a router's advertisement gives for a time comes and goes, and is left out: IPv6 addresses that are not permanent,
routes that they or a router make, and the local routes that the kernel makes for each address.

Sources: include/uapi/linux/{if_addr,rtnetlink}.h.
"""

from __future__ import annotations

import hashlib
import socket
import struct
from collections.abc import Callable, Mapping

from testctl_agent.network import netlink as nl
from testctl_agent.network import routes

_IFADDR = struct.Struct("=4BI")
_RTM_GETADDR = 22
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_IFA_F_PERMANENT = 0x80
_LINK_STATE = 0x11  # RTNH_F_DEAD, RTNH_F_LINKDOWN: the state of the cable
_DIGEST_CHARS = 16


def digest(data: bytes) -> str:
    """The first characters of the SHA-256; "-" of nothing."""
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARS] if data else "-"


def _addresses(family: int, device: str) -> str:
    """Addresses with their prefix, in order."""
    index = nl.index(device)
    with nl.Netlink() as netlink:
        answers = netlink.dump(_RTM_GETADDR, _IFADDR.pack(family, 0, 0, 0, 0))
    addresses = []
    for answer in answers:
        of, prefix, flags, _, at = _IFADDR.unpack_from(answer)
        attributes = nl.parse(answer[_IFADDR.size :])
        address = attributes.get(_IFA_LOCAL) or attributes.get(_IFA_ADDRESS)
        lasts = family == socket.AF_INET or flags & _IFA_F_PERMANENT
        if at == index and of == family and address and lasts:
            addresses.append(f"{socket.inet_ntop(family, address)}/{prefix}")
    return " ".join(sorted(addresses)) or "none"


def _routes(family: int, device: str) -> str:
    """Routes through the device: destination, table, and a digest of all else (metrics, gateway, …)."""
    shown = []
    for route in routes.through([device], family):
        if family == socket.AF_INET or route.stands:
            head = routes.RTMSG.pack(*route.fields[:8], route.fields[8] & ~_LINK_STATE)
            known = sorted(dict(route.attributes).items())
            rest = [nl.attr(kind, data) for kind, data in known if kind != routes.CACHEINFO]
            shown.append(f"{route.to},{route.fields[4]},{digest(head + b''.join(rest))}")
    return " ".join(sorted(shown)) or "none"


READERS: Mapping[str, Callable[[str], str]] = {
    "ipv4": lambda device: _addresses(socket.AF_INET, device),
    "ipv6": lambda device: _addresses(socket.AF_INET6, device),
    "routes": lambda device: _routes(socket.AF_INET, device),
    "routes ipv6": lambda device: _routes(socket.AF_INET6, device),
}
