# SPDX-License-Identifier: Apache-2.0
"""Packets for the tests, byte by byte."""

from __future__ import annotations

import struct

A, B = 0x020000000001, 0x020000000002
IPV4, IPV6, VLAN, MPLS = 0x0800, 0x86DD, 0x8100, 0x8847
PAYLOAD = bytes(range(1, 47))


def ethernet(kind: int, dst: int = B, src: int = A) -> bytes:
    return dst.to_bytes(6, "big") + src.to_bytes(6, "big") + kind.to_bytes(2, "big")


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def crc16(data: bytes) -> int:
    """CRC-16/ARC."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


def ipv4(src: int = 0x0A000001, dst: int = 0x0A000002, protocol: int = 17, ttl: int = 64, length: int = 100) -> bytes:
    """A header with the right checksum."""
    head = struct.pack(">BBHHHBBH2I", 0x45, 0, length, 0, 0, ttl, protocol, 0, src, dst)
    return head[:10] + checksum(head).to_bytes(2, "big") + head[12:]


def ports(src: int, dst: int) -> bytes:
    return struct.pack(">2H", src, dst)


def ipv6(src: int, dst: int, traffic_class: int = 0, label: int = 0, following: int = 59) -> bytes:
    first = 6 << 28 | traffic_class << 20 | label
    return struct.pack(">IHBB", first, 8, following, 64) + src.to_bytes(16, "big") + dst.to_bytes(16, "big")
