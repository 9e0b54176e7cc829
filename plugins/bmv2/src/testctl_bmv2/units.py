# SPDX-License-Identifier: Apache-2.0
"""What BMv2 counts in, and how a port model becomes that: packets, each taken to fill the MTU.

packet = MTU + 14 bytes + framing
rate   = floor(bits a second / (8 * packet)), at least 1    packets a second
depth  = floor(buffer / packet), at least 1                 packets that wait
mark   = ceil(threshold / packet)                           packets that wait
"""

from __future__ import annotations

ETHERNET_HEADER = 14
NO_DEPTH = 1 << 20
"""Packets when no buffer is set: more than any test has under way."""
MAX_DEPTH = (1 << 31) - 1


def packet_bytes(mtu: int, framing: int = 0) -> int:
    return mtu + ETHERNET_HEADER + framing


def packets_per_s(rate_bps: int, packet: int) -> int:
    """0, which is BMv2's "no limit", only for a rate of 0."""
    return max(1, rate_bps // (8 * packet)) if rate_bps else 0


def depth(buffer: int, packet: int) -> int:
    return min(max(1, buffer // packet), MAX_DEPTH) if buffer else NO_DEPTH


def mark(threshold: int, packet: int) -> int:
    return -(-threshold // packet)
