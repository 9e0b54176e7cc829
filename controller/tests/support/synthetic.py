# SPDX-License-Identifier: Apache-2.0
"""Writes captures of made-up traffic: exact answers for tests, and load for the bench.

Nothing here runs in a test of TCP: it makes the files that a testbed would.
"""

from __future__ import annotations

import ipaddress
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from testctl.records import Records
from testctl.records.schema import ACK, SYN, TCP_INFO_FIELDS, Array, Ints

T0_NS = 1_700_000_000 * 10**9
FIELDS = ("time_ns", "src", "sport", "dport", "seq", "ack", "length", "flags", "ecn", "window", "tsval", "tsecr")
WSCALE = 7


def frames(count: int, **given: Any) -> dict[str, Array]:
    """Columns of `count` packets (scalars are spread); src is 0 or 1, dst the other.

    sacks: (count, 8) wire edges, -1 for none.  Packets with SYN carry a window scale of WSCALE.
    flags: nine bits, AE the highest.
    """
    columns = {name: np.full(count, 0, np.int64) for name in FIELDS}
    columns |= {"sacks": np.full((count, 8), -1, np.int64), "flags": np.full(count, ACK, np.int64)}
    columns["window"] += 500
    for name, value in given.items():
        columns[name] = np.broadcast_to(np.asarray(value, np.int64), columns[name].shape).copy()
    return columns


def joined(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Packets of several parts in order of time (stable)."""
    columns = {name: np.concatenate([part[name] for part in parts]) for name in (*FIELDS, "sacks")}
    order = np.argsort(columns["time_ns"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def write_pcap(
    path: Path,
    packets: Mapping[str, Array],
    addresses: tuple[str, str] = ("10.0.0.1", "10.0.0.2"),
    *,
    snaplen: int = 128,
    big_endian: bool = False,
    nanoseconds: bool = True,
    vlan: int | None = None,
) -> None:
    """Write packets as Ethernet frames; each has TCP timestamps, SACK blocks where given."""
    e = ">" if big_endian else "<"
    ends = [np.frombuffer(ipaddress.ip_address(a).packed, np.uint8) for a in addresses]
    ip_at = 14 if vlan is None else 18
    ip_size = 20 if len(ends[0]) == 4 else 40
    blocks = (packets["sacks"][:, ::2] >= 0).sum(axis=1)
    syn = packets["flags"] & SYN > 0
    options = np.where(syn, 20, 12 + np.where(blocks > 0, 4 + 8 * blocks, 0))
    headers = ip_at + ip_size + 20 + options
    original = headers + packets["length"]
    captured = np.minimum(original, snaplen)
    offsets = np.concatenate([[0], np.cumsum(16 + captured)])
    out = np.zeros(int(offsets[-1]) + 512, np.uint8)
    at = offsets[:-1]
    # Headers behind the snap length are overwritten by the next record: write the last ones first.
    for row_set in _strides(captured, headers):
        _headers(out, at[row_set], {n: c[row_set] for n, c in packets.items()}, ends, ip_at, vlan, options[row_set])
    unit = 1 if nanoseconds else 1000
    head = np.stack(
        [packets["time_ns"] // 10**9, packets["time_ns"] % 10**9 // unit, captured, original], axis=1
    ).astype(f"{e}u4")
    _put(out, at, 0, head.view(np.uint8))
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    start = np.array([magic, 0x00020004 if big_endian else 0x00040002, 0, 0, snaplen, 1], f"{e}u4")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(start.tobytes() + out[: int(offsets[-1])].tobytes())


def _strides(captured: Ints, headers: Ints) -> list[Any]:
    if np.all(headers <= captured):
        return [slice(None)]
    return [slice(n, n + 1) for n in range(len(captured))]


def _put(out: Array, at: Ints, field: int, values: Array) -> None:
    out[at[:, None] + field + np.arange(values.shape[1])] = values


def _headers(
    out: Array, at: Ints, p: Mapping[str, Array], ends: list[Array], ip_at: int, vlan: int | None, options: Ints
) -> None:
    def be(field: int, size: int, values: Any) -> None:
        column = np.broadcast_to(np.asarray(values), len(at)).astype(f">u{size}")
        _put(out, at, 16 + field, column[:, None].view(np.uint8))

    v4 = len(ends[0]) == 4
    ip_size = 20 if v4 else 40
    tcp = ip_at + ip_size
    total = ip_size + 20 + options + p["length"]
    if vlan is not None:
        be(12, 2, 0x8100)
        be(14, 2, vlan)
    be(ip_at - 2, 2, 0x0800 if v4 else 0x86DD)
    source = np.stack(ends)[p["src"]]
    target = np.stack(ends)[1 - p["src"]]
    long = total > 0xFFFF
    if v4:
        be(ip_at, 1, 0x45)
        be(ip_at + 1, 1, p["ecn"])
        be(ip_at + 2, 2, np.where(long, 0, total))
        be(ip_at + 9, 1, 6)
        _put(out, at, 16 + ip_at + 12, np.concatenate([source, target], axis=1))
    else:
        be(ip_at, 2, 0x6000 | p["ecn"] << 4)
        be(ip_at + 4, 2, np.where(long, 0, total - 40))
        be(ip_at + 6, 1, 6)
        _put(out, at, 16 + ip_at + 8, np.concatenate([source, target], axis=1))
    be(tcp, 2, p["sport"])
    be(tcp + 2, 2, p["dport"])
    be(tcp + 4, 4, p["seq"] & 0xFFFFFFFF)
    be(tcp + 8, 4, p["ack"] & 0xFFFFFFFF)
    be(tcp + 12, 1, (20 + options) // 4 << 4 | p["flags"] >> 8)
    be(tcp + 13, 1, p["flags"] & 0xFF)
    be(tcp + 14, 2, p["window"])
    be(tcp + 20, 4, 0x0101080A)
    be(tcp + 24, 4, p["tsval"] & 0xFFFFFFFF)
    be(tcp + 28, 4, p["tsecr"] & 0xFFFFFFFF)
    syn = np.flatnonzero(p["flags"] & SYN)
    _put(out, at[syn], 16 + tcp + 32, np.tile(np.array([4, 2, 1, 3, 3, WSCALE, 1, 0], np.uint8), (len(syn), 1)))
    for rows in (np.flatnonzero(options == 12 + 4 + 8 * n) for n in range(1, 5)):
        rows = rows[p["flags"][rows] & SYN == 0]
        if len(rows):
            edges = p["sacks"][rows]
            count = int((edges[0] >= 0).sum()) // 2
            lead = np.tile(np.array([1, 1, 5, 2 + 8 * count], np.uint8), (len(rows), 1))
            _put(out, at[rows], 16 + tcp + 32, lead)
            body = (edges[:, : 2 * count] & 0xFFFFFFFF).astype(">u4").view(np.uint8)
            _put(out, at[rows], 16 + tcp + 36, body)


def write_point(
    pointdir: Path,
    captures: Mapping[str, Mapping[str, Array]],
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    parallel: int = 1,
    options: Mapping[str, Any] | None = None,
    **pcap: Any,
) -> Path:
    """A point directory with one flow "bulk" from `sender` (src 0) to `receiver` (src 1); returns it."""
    addresses = pcap.get("addresses", ("10.0.0.1", "10.0.0.2"))
    for where, packets in captures.items():
        write_pcap(pointdir / "raw" / where / "capture.pcap", packets, **pcap)
    flow = {
        "name": "bulk",
        "from": "sender",
        "to": "receiver",
        "generator": "tgen",
        "server_port": 5001,
        "client_port": 40000,
        "parallel": parallel,
        "options": dict(options or {}) | ({"family": 6} if ":" in addresses[0] else {}),
    }
    point = {"id": "synthetic", "tuples": [], "settings": dict(settings or {}), "flows": [flow], "topology": {}}
    outcome = {"t0_ns": T0_NS, "addresses": dict(zip(("sender", "receiver"), addresses, strict=True)), "flows": {}}
    (pointdir / "raw").mkdir(parents=True, exist_ok=True)
    (pointdir / "point.json").write_text(json.dumps(point))
    (pointdir / "raw" / "outcome.json").write_text(json.dumps(outcome))
    return pointdir


def write_samples(pointdir: Path, at_us: Mapping[float, Mapping[str, int]]) -> None:
    """Samples of the sender's tcp_info with these values; unless they say so ESTABLISHED, and all others 0."""
    samples = b""
    for time_us, values in at_us.items():
        info = bytearray(320)
        for name, place, width in TCP_INFO_FIELDS:
            info[place : place + width] = ({"state": 1} | dict(values)).get(name, 0).to_bytes(width, "little")
        samples += struct.pack("<QHHIII", T0_NS + int(time_us * 1000), 40000, 5001, 1, 0, 248) + info
    (pointdir / "raw" / "sender" / "tcp_info.bin").write_bytes(b"TGI1" + struct.pack("<I", 320) + samples)


def save(records: Records, directory: Path) -> Path:
    """Save records beside the documents that a point's directory has; returns the directory."""
    records.save(directory)
    (directory / "point.json").write_text(json.dumps(records.point.to_json()))
    (directory / "outcome.json").write_text(json.dumps(records.outcome.to_json()))
    return directory


def bulk(
    count: int, *, rate_bps: float = 1e9, delay_ns: int = 5_000_000, mss: int = 1448, isn: int = 4_294_000_000
) -> dict[str, dict[str, Array]]:
    """Captures of `count` data packets at a steady rate, an ACK for every second one, no loss.

    The wire's sequence numbers start at `isn`, which wraps early.
    """
    gap = int((mss + 66) * 8e9 / rate_bps)
    number = np.arange(count)
    sent = T0_NS + 2 * delay_ns + 20_000 + number * gap
    up = {"sport": 40000, "dport": 5001, "src": 0}
    down = {"sport": 5001, "dport": 40000, "src": 1}
    hello = frames(1, **up, time_ns=T0_NS, seq=isn, flags=SYN, ecn=0)
    reply = frames(1, **down, time_ns=T0_NS + delay_ns, seq=77, ack=isn + 1, flags=SYN | ACK)
    data = frames(count, **up, time_ns=sent, seq=isn + 1 + number * mss, ack=78, length=mss, ecn=2)
    data["tsval"] = sent // 10**6 % 2**32
    odd = number[1::2]
    acks = frames(len(odd), **down, time_ns=sent[odd] + delay_ns + 1000, seq=78, ack=isn + 1 + (odd + 1) * mss)
    acks["tsval"] = acks["time_ns"] // 10**6 % 2**32

    def seen(part: Mapping[str, Array], later: bool) -> dict[str, Array]:
        return {**part, "time_ns": part["time_ns"] + (delay_ns if later else 0)}

    return {
        "sender": joined([hello, seen(reply, True), data, seen(acks, True)]),
        "receiver": joined([seen(hello, True), reply, seen(data, True), acks]),
    }


class Conversation:
    """A connection written by hand: each call is one packet, seen at both ends unless lost.

    Times in µs after T0; sequence numbers relative to the first data byte, `isn` on the wire.
    """

    def __init__(self, *, delay_us: float = 10, isn: int = 1000, conn: int = 0, hello: bool = True) -> None:
        self.delay_us, self.isn, self.conn = delay_us, isn, conn
        self.seen: dict[str, list[dict[str, Array]]] = {"sender": [], "receiver": []}
        if hello:
            self._put(0, 0, 0, True, seq=isn, flags=SYN)
            self._put(1, delay_us, 0, True, seq=77, ack=isn + 1, flags=SYN | ACK)

    def _put(self, src: int, at_us: float, length: int, arrives: bool, **fields: Any) -> None:
        ports = {"sport": 40000 + self.conn, "dport": 5001}
        if src == 1:
            ports = {"sport": 5001, "dport": 40000 + self.conn}
        time_ns = T0_NS + int(at_us * 1000)
        fields = {"tsval": time_ns // 10**6 % 2**32, **fields}
        there, back = ("sender", "receiver") if src == 0 else ("receiver", "sender")
        self.seen[there].append(frames(1, src=src, time_ns=time_ns, length=length, **ports, **fields))
        if arrives:
            later = time_ns + int(self.delay_us * 1000)
            self.seen[back].append(frames(1, src=src, time_ns=later, length=length, **ports, **fields))

    def data(self, at_us: float, seq: int, length: int = 1448, *, arrives: bool = True, **fields: Any) -> None:
        """A data packet leaves the sender at `at_us`."""
        self._put(0, at_us, length, arrives, **{"seq": self.isn + 1 + seq, "ack": 78, "ecn": 2, **fields})

    def ack(self, at_us: float, ack: int, *, arrives: bool = True, sacks: Sequence[int] = (), **fields: Any) -> None:
        """An ACK leaves the receiver at `at_us`; sacks: edges, relative like ack."""
        edges = np.full((1, 8), -1, np.int64)
        edges[0, : len(sacks)] = [(self.isn + 1 + edge) % 2**32 for edge in sacks]
        self._put(1, at_us, 0, arrives, **{"seq": 78, "ack": self.isn + 1 + ack, "sacks": edges, **fields})

    def captures(self) -> dict[str, dict[str, Array]]:
        return {where: joined([frames(0), *parts]) for where, parts in self.seen.items()}
