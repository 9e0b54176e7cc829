# SPDX-License-Identifier: Apache-2.0
"""The load that a TRex server makes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """rate in bit/s (stateless: of Ethernet frames; ASTF: of TCP payload), packet_bytes: of a whole IP packet.

    send_port     TRex's number of the port that sends (ASTF: its ports are pairs, clients on the even one)
    latency_pps   timestamped packets per second besides the load; 0: latency is not measured
    flow_bytes    ASTF: bytes that the client of each connection sends
    force         acquire ports that another user has
    """

    rate: int
    duration_s: float
    source: str
    sink: str
    source_port: int
    sink_port: int
    packet_bytes: int = 1500
    send_port: int = 0
    latency_pps: int = 0
    flow_bytes: int = 100_000
    user: str = "testctl"
    force: bool = False
