# SPDX-License-Identifier: Apache-2.0
"""The testbed's program on eBPF, its queues set at will, and what its telemetry says of each packet."""

from __future__ import annotations

import struct
import time
from pathlib import Path

from plugins.p4c_ebpf.tests.harness import EbpfTarget

_PORT = struct.Struct("=2I11Q")
_NANOBITS = 8 * 10**9


class EbpfProgram(EbpfTarget):
    """`telemetry` is switched on from the start."""

    def __init__(self, json: Path) -> None:
        super().__init__(json)
        self.telemetry()

    def queue(self, port: int, depth_bytes: int) -> None:
        """Let so many bytes wait at a port; at one bit/s they stay."""
        if not depth_bytes:
            self.set_port(port)
            return
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        value = _PORT.pack(0, 1000 + port, 1, 0, 0, 0, now, depth_bytes * _NANOBITS, 0, 0, 0, 0, 0)
        ports = self.object.map("ports")
        ports.update(struct.pack("=I", port), value[: ports.value_bytes])

    def repeat(self, port: int, packet: bytes, count: int) -> None:
        """A packet, over and over; what comes out is counted by the program only."""
        self.inject(port, packet, repeat=count)
