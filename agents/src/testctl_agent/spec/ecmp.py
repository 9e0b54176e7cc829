# SPDX-License-Identifier: Apache-2.0
"""Which of several equal ways a connection is given (ECMP, RFC 2992): the reference of p4/*/forward.p4.

    draw = CRC32(CRC32(source, sink, protocol, source port, sink port) + salt mod 2^32) mod 2^16
    way  = floor(draw * ways / 2^16)

CRC32: Ethernet's (IEEE 802.3, 3.2.9), over bytes, most significant first.  The addition between, with its
carries, is not linear: switches with other salts choose independently.
"""

from __future__ import annotations

import ipaddress
import itertools
import zlib
from collections.abc import Mapping, Sequence

Stations = Mapping[str, str | Sequence[str]]
"""MAC address → the device that leads to it, or several of equal cost; of BROADCAST those for group addresses."""
BROADCAST = "ff:ff:ff:ff:ff:ff"

MAX_SEED = 2**32 - 1
DRAWS = 2**16
MAX_WAYS = 16
"""To one host, from one switch."""


def devices_of(value: str | Sequence[str]) -> tuple[str, ...]:
    """A value of the mapping as a tuple of devices."""
    return (value,) if isinstance(value, str) else tuple(value)


def salt_of(seed: int) -> int:
    """The 32 bits by which a switch with this seed differs from others."""
    return zlib.crc32(seed.to_bytes(8, "big"))


def draw(salt: int, source: tuple[str, int], sink: tuple[str, int], protocol: int = 6) -> int:
    """A number below DRAWS for the packets from one address and port to another."""
    addresses = b"".join(ipaddress.ip_address(address).packed for address, _ in (source, sink))
    ports = b"".join(port.to_bytes(2, "big") for _, port in (source, sink))
    first = zlib.crc32(addresses + bytes([protocol]) + ports)
    return zlib.crc32(((first + salt) % 2**32).to_bytes(4, "big")) % DRAWS


def way(number: int, ways: int) -> int:
    """The place of the way that a draw falls to, from 0."""
    return number * ways // DRAWS


def bounds(ways: int) -> list[tuple[int, int]]:
    """The least and the greatest draw of each way."""
    starts = [-(-place * DRAWS // ways) for place in range(ways + 1)]
    return [(low, high - 1) for low, high in itertools.pairwise(starts)]
