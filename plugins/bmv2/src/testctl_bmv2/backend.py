# SPDX-License-Identifier: Apache-2.0
"""BMv2 (simple_switch_grpc) as the switch: the testbed's program in a process of the agent's namespace.

It takes packets off the devices by AF_PACKET, before a filter at their clsact ingress drops them for
the kernel, so that BMv2 alone forwards.  Filter and process end with the back end; what an agent
that died left behind is taken away by the next.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, replace

from testctl_agent.bpf import load
from testctl_agent.network import netlink, qdisc
from testctl_agent.spec.ecmp import Stations
from testctl_agent.spec.errors import ApplyError, TestbedError
from testctl_agent.spec.fate import Action
from testctl_agent.spec.types import Value
from testctl_agent.switch import ingress
from testctl_agent.switch.backend import SWITCH_PARAMETERS, UNSET, settable
from testctl_agent.switch.drivers.driver import Count
from testctl_agent.switch.netem import NetemBackend
from testctl_agent.switch.testbed_tables import TestbedTables, built

from testctl_bmv2 import p4info, simple_switch, units
from testctl_bmv2.p4runtime import P4RuntimeDriver

_FILTER = "testctl_bmv2"
_NOT_HERE = ("aqm", "down", "jitter", "largest")
UNABLE: tuple[Action, ...] = ("delay", "reorder", "corrupt", "swap")
"""It has no timer for a packet, keeps none, and the program parses no payload."""
_DROP = bytes.fromhex("b700000002000000 9500000000000000")
"""r0 = TC_ACT_SHOT; exit"""


@dataclass(frozen=True)
class Port:
    """The requested settings of a port; 0: not set."""

    rate: int = 0
    buffer: int = 0
    ecn_threshold: int = 0
    framing: int = 0


class Bmv2Backend:
    """The back end `bmv2`."""

    name = "bmv2"

    def __init__(self, ports: tuple[str, ...], forwarding: Stations) -> None:
        self.ports = ports
        self._numbers = {device: number for number, device in enumerate(ports, 1)}
        self._models = dict.fromkeys(ports, Port())
        self._given: dict[str, tuple[int, int, int]] = {}
        self._delays = NetemBackend(ports)
        program, info = built()
        known = p4info.read(info)
        numbered = {number: device for device, number in self._numbers.items()}
        _release(ports)
        with ExitStack() as undo:
            undo.callback(_release, ports)
            self._switch = simple_switch.start(numbered, simple_switch.run_directory())
            undo.callback(self._switch.close)
            self.driver = P4RuntimeDriver(self._switch.address, program, known)
            undo.callback(self.driver.close)
            self.driver.registers = self._switch.thrift
            self._tables = TestbedTables(self.driver, self._numbers, forwarding, unable=UNABLE)
            for device in ports:
                take(device)
                self._give(device, Port())
            self._undo = undo.pop_all()

    def hits(self) -> list[Count]:
        """How many packets each rule of a range of packets has met, in the order of the rules."""
        return [self.driver.direct(row) for row in self._tables.fate_rows() if row.table == "fate"]

    def close(self) -> None:
        """End the process; the devices are as they were before."""
        self._undo.close()

    def unavailable(self, what: str) -> str:
        if what not in UNSET:
            return f"a port has no {what}"
        if what in _NOT_HERE:
            return f"BMv2 has no {what} of a link; take the back end ebpf"
        if what == "delay":
            missing = self._delays.unavailable("delay")
            return f"BMv2 has no delay, and this kernel has no netem for it: {missing}" if missing else ""
        if what in ("rate", "buffer", "flows", "fate") and self._switch.thrift is None:
            return "BMv2 was built without Thrift, and its P4Runtime has neither queues nor registers"
        return ""

    def read(self, port: str, what: str) -> Value:
        """What was asked for, or, when the MTU has changed since, what BMv2 was given, in packets."""
        self._alive(port, what)
        if what in SWITCH_PARAMETERS:
            return self._tables.read(what)
        if what in _NOT_HERE:
            return UNSET[what]
        if what == "delay":
            return self._delays.read(port, what)
        model = self._models[port]
        if what == "framing":
            return model.framing
        place = ("rate", "buffer", "ecn_threshold").index(what)
        given = self._given[port][place]
        if given != self._numbers_for(port, model)[place]:
            return f"{given} packets{'/s' if what == 'rate' else ''}"
        return (model.rate, model.buffer, model.ecn_threshold)[place] or "none"

    def apply(self, port: str, what: str, value: Value) -> None:
        self._alive(port, what)
        if not settable(self, port, what, value):
            return
        if what in SWITCH_PARAMETERS:
            self._tables.apply(what, value)
        elif what == "delay":
            self._delays.apply(port, what, value)
        else:
            wanted = 0 if value == "none" else int(value)
            self._give(port, replace(self._models[port], **{what: wanted}))

    def describe(self) -> dict[str, str]:
        return {
            "forwarding": f"{simple_switch.find()}, the testbed's P4 program in user space",
            "rate": "counted in packets of MTU size a second, rounded down, whatever their size; can't be read back",
            "buffer": "counted in packets of MTU size, rounded down, at least one; can't be read back; "
            "1024 packets before the program and 128 behind it are held beyond it",
            "ecn_threshold": "compared with the packets that wait, each taken as MTU-sized, rounded up",
            "delay": self.unavailable("delay") or "by the kernel's netem behind BMv2",
            "framing": "counts in the size of the packet that rate, buffer and threshold are divided by",
            "telemetry": "none: BMv2 reports no packet; fates are counted by rule",
            "hosts": "must compute checksums and cut segments themselves (tx off, tso off, gso off)",
        }

    def counters(self) -> list[dict[str, object]]:
        return [row for port in self.ports for row in qdisc.counters(port)]

    def _alive(self, port: str, what: str) -> None:
        try:
            self._switch.check()
        except TestbedError as error:
            raise ApplyError(f"port {port or 'of the switch'}, {what}: {error}") from error
        if port not in ("", *self.ports):
            raise ApplyError(f"port {port}, {what}: want one of the ports {', '.join(self.ports)}")

    def _numbers_for(self, port: str, model: Port) -> tuple[int, int, int]:
        packet = units.packet_bytes(netlink.mtu(port), model.framing)
        return (
            units.packets_per_s(model.rate, packet),
            units.depth(model.buffer, packet),
            units.mark(model.ecn_threshold, packet),
        )

    def _give(self, port: str, model: Port) -> None:
        given, number = self._numbers_for(port, model), self._numbers[port]
        try:
            if self._switch.thrift:
                self._switch.thrift.set_rate(number, given[0])
                self._switch.thrift.set_depth(number, given[1])
            self._tables.set_threshold(port, given[2] or None)
        except TestbedError as error:
            raise ApplyError(f"port {port}: {error}") from error
        self._models[port], self._given[port] = model, given


def take(device: str) -> None:
    """Drop for the kernel what comes in at a device.  Raises TestbedError when its clsact is somebody else's."""
    program = load.load_program(load.SCHED_CLS, _FILTER, _DROP)
    try:
        ingress.attach(device, (_FILTER, program))
    finally:
        os.close(program)


def _release(ports: tuple[str, ...]) -> None:
    """Remove the filters of this back end, also those of a dead process."""
    for device in ports:
        ingress.detach(device, _FILTER)


def open_backend(ports: tuple[str, ...], forwarding: Stations) -> Bmv2Backend:
    return Bmv2Backend(ports, forwarding)
