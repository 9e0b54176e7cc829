# SPDX-License-Identifier: Apache-2.0
"""UDP sockets for exchanges of single packets: bound to an address, IPv4 and IPv6, without fragmentation."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Mapping

from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value

HEADERS = {socket.AF_INET: 28, socket.AF_INET6: 48}
"""Bytes of the IP (without options) and UDP headers."""
_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _IPV6_DONTFRAG, _PROBE = 10, 23, 62, 3


def token_of(options: Mapping[str, Value]) -> int:
    """The number that identifies the packets of both ends: the seed, in 64 bits."""
    return int(options.get("seed", 0)) % 2**64


def canonical(address: str) -> str:
    """An IP address as a socket gives a sender's."""
    return str(socket.getaddrinfo(address, None, flags=socket.AI_NUMERICHOST)[0][4][0])


def bound(address: str, port: int, who: str) -> socket.socket:
    """A UDP socket at an address of this host; TestbedError when there is none."""
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    except ValueError as error:
        raise TestbedError(f"{who}: want an IP address; got {address!r}") from error
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.bind((address, port))
    except (OSError, OverflowError) as error:
        sock.close()
        why = error.strerror if isinstance(error, OSError) else error
        raise TestbedError(f"{who}: can't be at {address}, UDP port {port}: {why}") from error
    return sock


def never_fragment(sock: socket.socket) -> None:
    """Set DF on every packet and ignore the kernel's path MTU estimate (ip(7), PMTUDISC_PROBE)."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PROBE)
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_DONTFRAG, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PROBE)


def sent(sock: socket.socket, data: bytes, to: tuple[str, int]) -> bool:
    """Send; False when it is larger than the MTU of the device it leaves by."""
    try:
        sock.sendto(data, to)
    except OSError as error:
        if error.errno == errno.EMSGSIZE:
            return False
        raise
    return True
