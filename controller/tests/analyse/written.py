# SPDX-License-Identifier: Apache-2.0
"""Writes captures of a conversation in every format and of every link type."""

from __future__ import annotations

import gzip
import ipaddress
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
CLIENT6, SERVER6 = "2001:db8::1", "2001:db8::2"
BEGIN_NS = 1_700_000_000 * 10**9
MSS = bytes([2, 4, 5, 180])
SCALE = bytes([1, 3, 3, 7])


@dataclass(frozen=True)
class Segment:
    """A TCP segment: its bytes are headers and `length` zeros; total: of the IP header, if not the true one."""

    time_ns: int
    up: bool
    flags: int
    seq: int
    ack: int
    length: int = 0
    window: int = 1000
    options: bytes = b""
    ends: tuple[str, str] = (CLIENT, SERVER)
    ports: tuple[int, int] = (40000, 80)
    number: int = 0
    ttl: int = 64
    total: int | None = None
    extensions: bytes = b""
    fragment: int = 0
    checksum: int = 0

    @property
    def family(self) -> int:
        return ipaddress.ip_address(self.ends[0]).version

    def packet(self) -> bytes:
        ends = [ipaddress.ip_address(end).packed for end in (self.ends if self.up else self.ends[::-1])]
        ports = self.ports if self.up else self.ports[::-1]
        offset = (20 + len(self.options)) // 4 << 4
        tcp = struct.pack(">HHIIBBHHH", *ports, self.seq, self.ack, offset, self.flags, self.window, self.checksum, 0)
        tcp += self.options + bytes(self.length)
        if self.family == 4:
            total = 20 + len(tcp) if self.total is None else self.total
            head = struct.pack(">BBHHHBBH", 0x45, 0, total, self.number, 0x4000 | self.fragment, self.ttl, 6, 0)
            return head + b"".join(ends) + tcp
        total = len(self.extensions) + len(tcp) if self.total is None else self.total
        following = 0 if self.extensions else 6
        return struct.pack(">IHBB", 6 << 28, total, following, self.ttl) + b"".join(ends) + self.extensions + tcp


def conversation(*, data: int = 20, rtt_ns: int = 20_000_000, at_client: bool = True, reply: int = 0) -> list[Segment]:
    """A handshake, data packets of 1000 bytes each with an ACK, `reply` from the server, and two FINs, as the client or
    the server sees them."""
    time, segments = BEGIN_NS, []

    def add(up: bool, flags: int, seq: int, ack: int, length: int = 0, options: bytes = b"") -> None:
        segments.append(Segment(time, up, flags, seq, ack, length, 1000, options, number=len(segments) + 1))

    away, own = (rtt_ns, 20_000) if at_client else (20_000, rtt_ns)
    add(True, SYN, 999, 0, options=MSS + SCALE)
    time += away
    add(False, SYN | ACK, 4999, 1000, options=MSS + SCALE)
    time += own
    add(True, ACK, 1000, 5000)
    seq = 1000
    for _ in range(data):
        time += own
        add(True, ACK | PSH, seq, 5000, 1000)
        seq += 1000
        time += away
        add(False, ACK, 5000, seq)
    back = 5000
    for _ in range(reply):
        time += own
        add(False, ACK | PSH, back, seq, 1000)
        back += 1000
        time += own
        add(True, ACK, seq, back)
    time += own
    add(True, FIN | ACK, seq, back)
    time += away
    add(False, FIN | ACK, back, seq + 1)
    time += own
    add(True, ACK, seq + 1, back + 1)
    return segments


def over_ipv6(segments: Sequence[Segment], extensions: bytes = b"") -> list[Segment]:
    return [replace(segment, ends=(CLIENT6, SERVER6), extensions=extensions) for segment in segments]


Link = Callable[[Segment], bytes]


def _kind(segment: Segment) -> bytes:
    return b"\x08\x00" if segment.family == 4 else b"\x86\xdd"


LINKS: dict[str, tuple[int, Link]] = {
    "ethernet": (1, lambda s: bytes(12) + _kind(s)),
    "vlan": (1, lambda s: bytes(12) + b"\x81\x00\x00\x05" + _kind(s)),
    "qinq": (1, lambda s: bytes(12) + b"\x88\xa8\x00\x05\x81\x00\x00\x06" + _kind(s)),
    "pppoe": (1, lambda s: bytes(12) + b"\x88\x64\x11\x00\x00\x01\x00\x00" + (b"\x00\x21", b"\x00\x57")[s.family == 6]),
    "cooked": (113, lambda s: (b"\x00\x04" if s.up else b"\x00\x00") + bytes(12) + _kind(s)),
    "cooked2": (276, lambda s: _kind(s) + bytes(8) + (b"\x04" if s.up else b"\x00") + bytes(9)),
    "raw": (101, lambda s: b""),
    "raw12": (12, lambda s: b""),
    "raw14": (14, lambda s: b""),
    "ipv4": (228, lambda s: b""),
    "null": (0, lambda s: struct.pack("<I", 2)),
    "loop": (108, lambda s: struct.pack(">I", 2)),
}


def pcap(
    segments: Sequence[Segment], link: str = "ethernet", *, order: str = "<", nano: bool = True, snap: int = 1 << 18,
    kuznetzov: bool = False,
) -> bytes:  # fmt: skip
    """A pcap file; snap: bytes kept of a frame."""
    number, head = LINKS[link]
    magic = 0xA1B2CD34 if kuznetzov else 0xA1B23C4D if nano else 0xA1B2C3D4
    made = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 1 << 18, number)]
    for segment in segments:
        frame = head(segment) + segment.packet()
        fraction = segment.time_ns % 10**9 // (1 if nano and not kuznetzov else 1000)
        cut = frame[:snap]
        made.append(struct.pack(order + "IIII", segment.time_ns // 10**9, fraction, len(cut), len(frame)))
        made.append((struct.pack(order + "IHBB", 2, 0x800, 4 if segment.up else 0, 0) if kuznetzov else b"") + cut)
    return b"".join(made)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, 12 + len(body)) + body + struct.pack(order + "I", 12 + len(body))


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<") -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, link: int, resolution: int = 9, offset_s: int = 0) -> bytes:
    options = option(order, 9, bytes([resolution])) + option(order, 14, struct.pack(order + "q", offset_s))
    return block(order, 1, struct.pack(order + "HHI", link, 0, 0) + options + option(order, 0, b""))


def enhanced(order: str, number: int, units: int, frame: bytes, flags: int | None = None) -> bytes:
    body = struct.pack(order + "IIIII", number, units >> 32, units & 0xFFFFFFFF, len(frame), len(frame)) + frame
    body += bytes(-len(frame) % 4)
    if flags is not None:
        body += option(order, 2, struct.pack(order + "I", flags)) + option(order, 0, b"")
    return block(order, 6, body)


def pcapng(segments: Sequence[Segment], link: str = "ethernet", *, order: str = "<", flags: bool = False) -> bytes:
    """A pcapng file of one section and interface, in ns; flags: of inbound and outbound packets."""
    number, head = LINKS[link]
    made = [section(order), interface(order, number)]
    for segment in segments:
        side = (2 if segment.up else 1) if flags else None
        made.append(enhanced(order, 0, segment.time_ns, head(segment) + segment.packet(), side))
    return b"".join(made)


def several_interfaces(segments: Sequence[Segment]) -> bytes:
    """Sections of both byte orders; interfaces of two link types, with times in 2^-20 s, ms less an hour, and ns."""
    half = len(segments) // 2
    made = [section("<"), interface("<", 1, 0x80 | 30), interface("<", 101, 9, -3600), block("<", 5, bytes(12))]
    for index, segment in enumerate(segments[:half]):
        if index % 2:
            made.append(enhanced("<", 1, segment.time_ns + 3600 * 10**9, segment.packet()))
        else:
            units = -(-segment.time_ns * 2**30 // 10**9)
            made.append(enhanced("<", 0, units, LINKS["ethernet"][1](segment) + segment.packet()))
    made += [section(">"), interface(">", 113)]
    for segment in segments[half:]:
        made.append(enhanced(">", 0, segment.time_ns, LINKS["cooked"][1](segment) + segment.packet()))
    return b"".join(made)


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data)
