# SPDX-License-Identifier: Apache-2.0
"""The load that a TRex server makes, and the two ways to make it."""

from __future__ import annotations

import ipaddress
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from testctl_agent.spec.errors import TestbedError

from testctl_hardware.trex_rpc import Client


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

    def check_addresses(self) -> None:
        """Raise TestbedError unless both addresses are of IPv4."""
        for name in ("source", "sink"):
            try:
                ipaddress.IPv4Address(getattr(self, name))
            except ValueError as error:
                raise TestbedError(f"trex: {name}: want an IPv4 address; got {getattr(self, name)!r}") from error


class Mode(ABC):
    """One load on a server, from acquire to release, stateless or stateful; every method raises TestbedError."""

    def __init__(self, client: Client, load: Load) -> None:
        self._client, self._load = client, load
        self._right: dict[str, Any] = {}
        self._before: dict[str, Any] = {}

    @abstractmethod
    def prepare(self) -> None:
        """Take the server or its port, and give it the load."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def running(self) -> bool: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def result(self) -> dict[str, Any]: ...

    @abstractmethod
    def close(self) -> None:
        """Give back what `prepare` took, as it was."""
