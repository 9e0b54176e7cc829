# SPDX-License-Identifier: Apache-2.0
"""Stateless TRex: one stream of UDP packets at a constant rate from one port to another, counted by its own id."""

from __future__ import annotations

import base64
import ipaddress
import struct
from collections.abc import Mapping
from typing import Any

from testctl_agent.spec.errors import TestbedError

from testctl_hardware.trex_load import Load, Mode

API = ("STL", 5, 1)
STREAM, LATENCY_STREAM = 1, 2
_IP, _UDP = 20, 8
_MIN, _MAX = 64, 9216
"""Bytes of an IP packet; a stream with latency writes 16 of its own into the payload."""


def packet(load: Load) -> bytes:
    """The Ethernet frame (no check sequence); the server fills in its ports' MAC addresses."""
    payload = load.packet_bytes - _IP - _UDP
    source, sink = (ipaddress.IPv4Address(address).packed for address in (load.source, load.sink))
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, load.packet_bytes, 0, 0x4000, 64, 17, 0, source, sink)
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    udp = struct.pack("!HHHH", load.source_port, load.sink_port, _UDP + payload, 0)
    return bytes(12) + b"\x08\x00" + head + udp + bytes(payload)


def checksum(data: bytes) -> int:
    """RFC 1071 over an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def stream(load: Load, number: int, rate: Mapping[str, Any], rule: str) -> dict[str, Any]:
    """The object that add_stream takes; rule: "stats" counts packets, "latency" also timestamps each packet."""
    counted = {"enabled": True, "stream_id": number, "rule_type": rule, "vxlan": False, "ieee_1588": False}
    return {
        "enabled": True, "self_start": True, "flags": 0, "action_count": 0, "isg": 0.0, "next_stream_id": -1,
        "packet": {"binary": base64.b64encode(packet(load)).decode(), "meta": ""},
        "mode": {"type": "continuous", "rate": dict(rate)},
        "vm": {"instructions": []},
        "flow_stats": counted,
    }  # fmt: skip


def streams(load: Load) -> dict[int, dict[str, Any]]:
    """Number → stream: the load, and if latency is measured a stream of a few timestamped packets."""
    found = {STREAM: stream(load, STREAM, {"type": "bps_L2", "value": float(load.rate)}, "stats")}
    if load.latency_pps:
        stamped = {"type": "pps", "value": float(load.latency_pps)}
        found[LATENCY_STREAM] = stream(load, LATENCY_STREAM, stamped, "latency")
    return found


def check(load: Load) -> None:
    """Raises TestbedError for a load that a packet can't express."""
    if not _MIN <= load.packet_bytes <= _MAX:
        raise TestbedError(f"trex: want IP packets of {_MIN} to {_MAX} bytes; got {load.packet_bytes}")
    load.check_addresses()


def summary(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Packets and bytes between two replies to get_pgid_stats, summed over ports; latency in us of timestamped packets.

    Raises TestbedError if the later reply does not contain the stream.
    """
    flows = after.get("flow_stats") or {}
    if str(STREAM) not in flows:
        raise TestbedError(f"trex: get_pgid_stats: want stream {STREAM}; got {', '.join(map(str, flows)) or 'none'}")
    found: dict[str, Any] = {name: _count(after, key) - _count(before, key) for name, key in _COUNTS.items()}
    found["drops"] = found["packets_sent"] - found["packets_received"]
    stamped = (after.get("latency") or {}).get(str(LATENCY_STREAM))
    if stamped:
        times = stamped.get("lat", {})
        found["latency_us"] = {name: times.get(key) for name, key in _TIMES.items()}
        found["latency_errors"] = {name: stamped.get("er", {}).get(key, 0) for name, key in _ERRORS.items()}
    return found


def _count(counters: Mapping[str, Any], key: str) -> int:
    own = (counters.get("flow_stats") or {}).get(str(STREAM), {})
    return int(sum(own.get(key, {}).values()))


_COUNTS = {"packets_sent": "tp", "bytes_sent": "tb", "packets_received": "rp", "bytes_received": "rb"}
_TIMES = {"mean": "average", "least": "total_min", "most": "total_max", "jitter": "jit"}
_ERRORS = {"dropped": "drp", "out_of_order": "ooo", "duplicates": "dup"}


class Stateless(Mode):
    """One load on one port of a server."""

    def prepare(self) -> None:
        """Acquire the port, and add the streams."""
        self._client.sync(*API)
        port = {"port_id": self._load.send_port}
        handler = self._client.call("acquire", **port, user=self._load.user, session_id=0, force=self._load.force)
        self._right = {**port, "handler": handler, "profile_id": "_"}
        self._client.call("remove_all_streams", **self._right)
        for number, given in streams(self._load).items():
            self._client.call("add_stream", **self._right, stream_id=number, stream=given)

    def _counted(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.call("get_pgid_stats", pgids=list(streams(self._load)))
        return found

    def start(self) -> None:
        self._before = self._counted()
        self._client.call(
            "start_traffic", **self._right, duration=self._load.duration_s, force=False, core_mask=2**64 - 1,
            mul={"type": "raw", "op": "abs", "value": 1.0}, start_at_ts=0,
        )  # fmt: skip

    def running(self) -> bool:
        found = self._client.call("get_port_status", port_id=self._load.send_port)
        return bool(found.get("state") == "TX")

    def stop(self) -> None:
        self._client.call("stop_traffic", **self._right)

    def result(self) -> dict[str, Any]:
        return summary(self._before, self._counted())

    def close(self) -> None:
        """Release the port in its previous state."""
        if self._right:
            self._client.call("remove_rx_filters", **self._right)
            self._client.call("remove_all_streams", **self._right)
            self._client.call("release", port_id=self._load.send_port, handler=self._right["handler"])
            self._right = {}
