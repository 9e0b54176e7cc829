# SPDX-License-Identifier: Apache-2.0
"""A switch of three ports that runs the testbed's program on one target, and what it makes of packets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from typing import Any

import pytest
from testctl_agent.switch.testbed_tables import TestbedTables, built

from agents.tests.switch.packets import ECE, Segment, mac, read

PORTS = {"one": 1, "two": 2, "three": 3}


def address(host: int) -> str:
    """The MAC address of a host as text."""
    return ":".join(f"{byte:02x}" for byte in mac(host))


STATIONS = {address(n): device for device, n in PORTS.items()}
BULK = "bulk/0 tcp 10.0.0.1:40000 10.0.0.2:5201"
SIX = "six/0 tcp [fd00::1]:40000 [fd00::2]:5201"
FORWARD, BACKWARD = 1, 2
"""Ids of the first connection."""
SIX_FORWARD, SIX_BACKWARD = 3, 4
"""Those of the second one, over IPv6."""


def open_target(name: str) -> AbstractContextManager[Any]:
    """A target with the committed build of the program; skips the test where it can't be had."""
    if name == "bmv2":
        if reason := pytest.importorskip("testctl_bmv2.simple_switch").unavailable():
            pytest.skip(reason)
        from plugins.p4c_ebpf.tests.bmv2_target import Bmv2Target

        return Bmv2Target(*built())
    pytest.importorskip("p4c_ebpf", reason="the harness that runs programs is of plugins/p4c_ebpf")
    from agents.tests.switch.program_ebpf import EbpfProgram

    return closing(EbpfProgram(built()[0]))


class ProgramSwitch:
    """Hosts 1, 2 and 3 stand behind ports 1, 2 and 3.

    target  what runs the program
    """

    def __init__(self, target: Any) -> None:
        self.target = target
        self.driver = target.driver
        self.tables = TestbedTables(self.driver, PORTS, STATIONS, unable=getattr(target, "unable", ()))

    def reset(self) -> None:
        for device in PORTS:
            self.tables.set_threshold(device, None)
        self.tables.set_fates("none")
        self.tables.set_flows(f"{BULK}; {SIX}")
        for table in ("classify4", "classify6"):
            self.driver.clear(table)

    def through(self, packet: bytes | Segment, port: int = 0) -> bytes | None:
        """What leaves at the one port it has to leave at, for a packet between hosts 1 and 2; None: nothing."""
        built_ = packet.build() if isinstance(packet, Segment) else packet
        came = port or (2 if isinstance(packet, Segment) and packet.back else 1)
        out = self.target.inject(came, built_)
        if not out:
            return None
        assert [at for at, _ in out] == [3 - came], "it leaves where it belongs, once"
        return bytes(out[0][1])

    def outcome(self, segment: Segment) -> str:
        """ "": unchanged; else drop, CE, ECT0, ECE, more than one with blanks.  All else must be as it was."""
        out = self.through(segment)
        if out is None:
            return "drop"
        before, after = read(segment.build()), read(out)
        assert after.right, "checksums are right"
        words = [("NOT", "ECT1", "ECT0", "CE")[after.ecn]] if after.ecn != before.ecn else []
        words += ["ECE"] if after.flags & ~before.flags & ECE else []
        if not words:
            assert out == segment.build(), "nothing has changed"
        return " ".join(words)

    def outcomes(self, segments: Sequence[Segment]) -> list[str]:
        return [self.outcome(segment) for segment in segments]

    def seen(self, flow: int) -> tuple[int, int, int]:
        """(data segments, first transmissions, acks) counted for a flow id."""
        data, first, acks = (self.driver.register(name)[flow] for name in ("data_seen", "first_seen", "acks_seen"))
        return data, first, acks

    def flow_packets(self, flow: int) -> int:
        return int(self.driver.counter("flow_packets", flow).packets)


def of(text: str, v6: bool) -> str:
    """Fates of `bulk`, or the same of `six`; and those of `six` become those of `bulk`."""
    other = {"bulk": "six", "six": "bulk"}
    return re.sub(r"\b(bulk|six)\b", lambda name: other[name[0]], text) if v6 else text


def stream(count: int, isn: int = 1000, size: int = 100, ecn: int = 0, **other: Any) -> list[Segment]:
    """The first `count` data segments of a connection whose SYN had this number."""
    return [Segment(isn + 1 + n * size, bytes([n % 251]) * size, ecn=ecn, **other) for n in range(count)]


def syn(isn: int = 1000, **other: Any) -> Segment:
    return Segment(isn, flags=2, **other)
