# SPDX-License-Identifier: Apache-2.0
"""Packets as bytes, built field by field, and what came out of a switch read back."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

FIN, SYN, RST, PSH, ACK, ECE = 0x01, 0x02, 0x04, 0x08, 0x10, 0x40
NOT_ECT, ECT1, ECT0, CE = 0, 1, 2, 3
TCP, UDP = 6, 17
_ETHERNET = 14


def mac(host: int) -> bytes:
    """The address of the host at port `host`."""
    return bytes([2, 0, 0, 0, 0, host])


def ethernet(dst: bytes, src: bytes, kind: int, body: bytes, vlan: int | None = None) -> bytes:
    tag = b"" if vlan is None else struct.pack("!HH", 0x8100, vlan)
    return dst + src + tag + struct.pack("!H", kind) + body


@dataclass(frozen=True)
class Segment:
    """A TCP segment from host 1 to host 2, or in the other direction if `back`.

    ihl, data_offset  in words of 32 bits; 0: the correct value
    padding           bytes of Ethernet behind the IP packet
    """

    seq: int = 0
    payload: bytes = b""
    ack: int = 0
    flags: int = ACK
    ecn: int = NOT_ECT
    back: bool = False
    v6: bool = False
    sport: int = 40000
    dport: int = 5201
    vlan: int | None = None
    ip_options: bytes = b""
    tcp_options: bytes = b""
    more_fragments: bool = False
    fragment_offset: int = 0
    data_offset: int = 0
    padding: int = 0
    protocol: int = TCP
    dscp: int = 0
    identification: int = 0

    def build(self) -> bytes:
        there = ("10.0.0.1", "10.0.0.2") if not self.v6 else ("fd00::1", "fd00::2")
        src, dst = (ipaddress.ip_address(end).packed for end in (reversed(there) if self.back else there))
        sport, dport = (self.dport, self.sport) if self.back else (self.sport, self.dport)
        body = self._udp(sport, dport) if self.protocol == UDP else self._tcp(sport, dport, src, dst)
        packet = self._ipv6(src, dst, body) if self.v6 else self._ipv4(src, dst, body)
        stations = (mac(1), mac(2)) if self.back else (mac(2), mac(1))
        return ethernet(*stations, 0x86DD if self.v6 else 0x0800, packet, self.vlan) + bytes(self.padding)

    def _tcp(self, sport: int, dport: int, src: bytes, dst: bytes) -> bytes:
        offset = self.data_offset or 5 + len(self.tcp_options) // 4
        seq, ack = self.seq % 2**32, self.ack % 2**32
        fields = (sport, dport, seq, ack, offset << 12 | self.flags, 0xFFF0, 0, 0)
        plain = struct.pack("!HHIIHHHH", *fields) + self.tcp_options + self.payload
        return plain[:16] + struct.pack("!H", checksum(pseudo(src, dst, TCP, len(plain)) + plain)) + plain[18:]

    def _udp(self, sport: int, dport: int) -> bytes:
        return struct.pack("!HHHH", sport, dport, 8 + len(self.payload), 0) + self.payload

    def _ipv4(self, src: bytes, dst: bytes, body: bytes) -> bytes:
        words = 5 + len(self.ip_options) // 4
        place = self.more_fragments << 13 | self.fragment_offset
        length = 4 * words + len(body)
        fields = (0x40 | words, self.dscp << 2 | self.ecn, length, self.identification, place, 64, self.protocol, 0)
        plain = struct.pack("!BBHHHBBH", *fields)
        plain += src + dst + self.ip_options
        return plain[:10] + struct.pack("!H", checksum(plain)) + plain[12:] + body

    def _ipv6(self, src: bytes, dst: bytes, body: bytes) -> bytes:
        first = 6 << 28 | (self.dscp << 2 | self.ecn) << 20 | 0x12345
        return struct.pack("!IHBB", first, len(body), self.protocol, 64) + src + dst + body


def checksum(data: bytes) -> int:
    """RFC 1071, in full."""
    padded = data + bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo(src: bytes, dst: bytes, protocol: int, length: int) -> bytes:
    return src + dst + struct.pack("!II", length, protocol)


@dataclass(frozen=True)
class Seen:
    """What can have changed in a TCP segment, and whether its checksums are right."""

    ecn: int
    flags: int
    right: bool


def read(packet: bytes) -> Seen:
    """A TCP segment without IP options; both checksums are computed in full."""
    at = _ETHERNET + (4 if packet[12:14] == b"\x81\x00" else 0)
    if packet[at] >> 4 == 4:
        length = struct.unpack_from("!H", packet, at + 2)[0]
        tcp = packet[at + 20 : at + length]
        ecn = packet[at + 1] & 3
        right = checksum(packet[at : at + 20]) == 0
        ends = packet[at + 12 : at + 16], packet[at + 16 : at + 20]
    else:
        length = struct.unpack_from("!H", packet, at + 4)[0]
        tcp = packet[at + 40 : at + 40 + length]
        ecn = packet[at + 1] >> 4 & 3
        right = True
        ends = packet[at + 8 : at + 24], packet[at + 24 : at + 40]
    return Seen(ecn, tcp[13], right and checksum(pseudo(*ends, TCP, len(tcp)) + tcp) == 0)


def with_ecn(segment: bytes, ecn: int, flags: int | None = None) -> bytes:
    """The segment with another ECN field (and TCP flags), its checksums computed in full."""
    out = bytearray(segment)
    at = _ETHERNET + (4 if segment[12:14] == b"\x81\x00" else 0)
    v4 = out[at] >> 4 == 4
    out[at + 1] = out[at + 1] & 0xFC | ecn if v4 else out[at + 1] & 0xCF | ecn << 4
    tcp = at + (20 if v4 else 40)
    if v4:
        out[at + 10 : at + 12] = bytes(2)
        out[at + 10 : at + 12] = struct.pack("!H", checksum(bytes(out[at : at + 20])))
    if flags is not None:
        out[tcp + 13] = flags
        length = struct.unpack_from("!H", out, at + (2 if v4 else 4))[0] - (20 if v4 else 0)
        ends = (at + 12, at + 16, at + 20) if v4 else (at + 8, at + 24, at + 40)
        src, dst = bytes(out[ends[0] : ends[1]]), bytes(out[ends[1] : ends[2]])
        out[tcp + 16 : tcp + 18] = bytes(2)
        whole = pseudo(src, dst, TCP, length) + bytes(out[tcp : tcp + length])
        out[tcp + 16 : tcp + 18] = struct.pack("!H", checksum(whole))
    return bytes(out)
