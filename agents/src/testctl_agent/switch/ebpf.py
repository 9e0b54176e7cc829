# SPDX-License-Identifier: Apache-2.0
"""The testbed's P4 program in the kernel: one tc program at the clsact ingress of every port.

It parses, decides, models the egress port as an ideal link (p4c_ebpf/runtime/port_model.h) and hands the
packet to that port's device, whose fq lets it go at the nanosecond.  fq is there only where packets
wait.  Programs, filters and qdiscs go with close(); what an agent that died left is removed by the
next that opens.

The program is loaded from the object that TESTCTL_PROGRAM names (compiled where there is a compiler),
or compiled here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from testctl_agent.network import netlink, qdisc
from testctl_agent.spec.errors import ApplyError, TestbedError, TestctlError
from testctl_agent.spec.types import Value
from testctl_agent.switch import ebpf_ports, ingress, testbed_object
from testctl_agent.switch.backend import PORT_PARAMETERS, SWITCH_PARAMETERS, UNSET
from testctl_agent.switch.ebpf_ports import MAX_BYTES, Port, PortMap
from testctl_agent.switch.testbed_program import MAX_DEPTH
from testctl_agent.switch.testbed_tables import TestbedTables

_MEMBERS = ("rate", "delay", "buffer", "framing")


class EbpfBackend:
    """The back end `ebpf`."""

    name = "ebpf"

    def __init__(self, ports: tuple[str, ...], forwarding: Mapping[str, str]) -> None:
        ebpf_ports.check_devices(ports)
        self.ports = ports
        self._numbers = {device: number for number, device in enumerate(ports, 1)}
        self._thresholds: dict[str, int] = {}
        self._missing: str | None = None
        self._counting = ""
        for device in ports:
            ebpf_ports.detach(device)
        self._loaded = testbed_object.load()
        try:
            self._map = PortMap(self._loaded.map_fd("ports"))
            for device, number in self._numbers.items():
                index = netlink.index(device)
                self._map.write(number, Port(index))
                self._loaded.set_port_of(index, number)
            self._tables = TestbedTables(self._loaded.driver, self._numbers, forwarding, self._loaded.most_copies)
            for device, number in self._numbers.items():
                ingress.attach(device, self._loaded.program_fd, ebpf_ports.FILTER)
                self._counting = self._counting or ebpf_ports.one_after_the_other(device, number)
        except TestctlError:
            self.close()
            raise

    @property
    def program_fd(self) -> int:
        """The loaded program, for BPF_PROG_TEST_RUN."""
        return self._loaded.program_fd

    def close(self) -> None:
        for device in self.ports:
            with suppress(TestbedError):  # the device is gone, and with it what was on it
                ebpf_ports.detach(device)
        self._loaded.close()

    def unavailable(self, what: str) -> str:
        if what in SWITCH_PARAMETERS or what == "ecn_threshold":
            return ""
        if what not in PORT_PARAMETERS:
            return f"a port has no {what}"
        if self._missing is None:
            self._missing = qdisc.unavailable("fq")
        return f"{self._missing}, which lets packets go at their time" if self._missing else ""

    def read(self, port: str, what: str) -> Value:
        if what == "flows":
            return self._tables.flows()
        if what == "fate":
            return self._tables.fates()
        number = self._number(port, what)
        if what == "ecn_threshold":
            return self._thresholds.get(port, UNSET[what])
        model = self._map.read(number)
        if model.timed and not ebpf_ports.has_clock(port):
            raise ApplyError(f"port {port}, {what}: want our fq as the root qdisc; got none")
        return getattr(model, what) or UNSET[what]

    def apply(self, port: str, what: str, value: Value) -> None:
        if what not in SWITCH_PARAMETERS:
            self._number(port, what)
        if value != UNSET.get(what) and (reason := self.unavailable(what)):
            raise ApplyError(f"port {port}, {what}: want {value}; {reason}")
        if what == "flows":
            self._tables.set_flows(str(value))
        elif what == "fate":
            self._tables.set_fates(str(value))
        else:
            try:
                self._set(port, self._numbers[port], what, 0 if value == "none" else int(value))
            except (TestbedError, ValueError) as error:
                raise ApplyError(f"port {port}, {what}: want {value}; {error}") from error

    def _set(self, port: str, number: int, what: str, value: int) -> None:
        now = self._map.read(number)
        threshold, buffer = self._thresholds.get(port, 0), now.buffer
        if what == "ecn_threshold":
            threshold = value
            if value > MAX_DEPTH:
                raise ApplyError(f"a queue's depth has 19 bits in P4: at most {MAX_DEPTH} bytes")
        if what == "buffer":
            buffer = value
            if value > MAX_BYTES:
                raise ApplyError(f"at most {MAX_BYTES} bytes can wait")
        if buffer and threshold > buffer:
            raise ApplyError(f"a threshold beyond the buffer: {threshold} of {buffer} bytes")
        if what == "ecn_threshold":
            self._tables.set_threshold(port, value or None)
            self._thresholds = {p: v for p, v in (self._thresholds | {port: value}).items() if v}
            return
        after = Port(**{name: getattr(now, name) for name in _MEMBERS} | {what: value})
        if after.timed:
            ebpf_ports.set_clock(port, wanted=True)
        self._map.change(number, **{what: value})
        if not after.timed:
            ebpf_ports.set_clock(port, wanted=False)

    def _number(self, port: str, what: str) -> int:
        if port not in self._numbers:
            raise ApplyError(f"port {port}, {what}: want one of the ports {', '.join(self.ports)}")
        return self._numbers[port]

    def describe(self) -> dict[str, str]:
        return {
            "forwarding": f"the P4 program testbed, {testbed_object.compiled().name}, translated to eBPF",
            "rate": self.unavailable("rate")
            or "exact; packets leave at the kernel's next timer tick of their nanosecond",
            "flooding": self._flooding(),
            "counting": self._counting or "exact; a port's packets come one after the other",
            "buffer": f"at most {MAX_BYTES} bytes; without a rate nothing waits and it has no effect",
            "ecn_threshold": f"at most {MAX_DEPTH} bytes: enq_qdepth has 19 bits",
        }

    def _flooding(self) -> str:
        most = self._loaded.most_copies
        if len(self.ports) - 1 > most:
            return f"a packet is copied to at most {most} ports and this switch has {len(self.ports)}: none is flooded"
        return "broadcast and multicast go to all other ports"

    def counters(self) -> list[dict[str, object]]:
        return [row for port in self.ports for row in (*qdisc.counters(port), *ebpf_ports.counters(port))]


def open_backend(ports: tuple[str, ...], forwarding: Mapping[str, str]) -> EbpfBackend:
    return EbpfBackend(ports, forwarding)
