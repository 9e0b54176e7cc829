# SPDX-License-Identifier: Apache-2.0
"""The testbed's P4 program in the kernel: one tc program at the clsact ingress of every port.

It parses, decides, models the egress port as an ideal link (p4c_ebpf/runtime/port_model.h) and hands the
packet to that port's device, whose fq lets it go at the nanosecond.  fq is there only where packets
wait.  Programs, filters and qdiscs go with close(); leftovers of an agent that died are removed by
the next that opens.

The program is loaded from the object that is committed, or that TESTCTL_PROGRAM names.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from testctl_agent.network import netlink, qdisc
from testctl_agent.spec import p4_program, schedule, trace
from testctl_agent.spec.ecmp import Stations
from testctl_agent.spec.errors import ApplyError, TestbedError, TestctlError, Unavailable
from testctl_agent.spec.types import Value
from testctl_agent.switch import ebpf_aqm, ebpf_links, ebpf_ports, ingress, own_program, testbed_object
from testctl_agent.switch.backend import PORT_PARAMETERS, SWITCH_PARAMETERS, UNSET, shown
from testctl_agent.switch.ebpf_aqm import Managed
from testctl_agent.switch.ebpf_links import Link, LinkMaps
from testctl_agent.switch.ebpf_ports import MAX_BYTES, Port, PortMap
from testctl_agent.switch.needs import Settings, needs
from testctl_agent.switch.physical_ports import PhysicalPorts
from testctl_agent.switch.testbed_program import MAX_DEPTH
from testctl_agent.switch.testbed_tables import TestbedTables


class EbpfBackend:
    """The back end `ebpf`; with settings, what will be set there, the program is loaded as far as they need it."""

    name = "ebpf"

    def __init__(self, ports: tuple[str, ...], forwarding: Stations, settings: Settings | None = None) -> None:
        ebpf_ports.check_devices(ports)
        self.ports = ports
        self._numbers = {device: number for number, device in enumerate(ports, 1)}
        self._thresholds: dict[str, int] = {}
        self._managed: dict[str, Managed] = {}
        self._missing: str | None = None
        self._holding = False
        self._counting = ""
        for device in ports:
            ebpf_ports.detach(device)
        self._own = {what: str((settings or {}).get(("", what), UNSET[what])) for what in ("program", "entries")}
        """The user's program and its rows: those that the switch starts with."""
        is_own = self._own["program"] != UNSET["program"]
        own_ports, stations = (own_program.PORTS, {}) if is_own else (self._numbers, forwarding)
        self._physical = PhysicalPorts(ports)
        try:
            file, layout = testbed_object.front() if is_own else (testbed_object.path(), testbed_object.layout())
            needed = needs(own_ports, stations, layout.most_copies, settings) if settings is not None else None
            self._testbeds = self._loaded = testbed_object.load(layout, needed, file)
        except BaseException:
            self._physical.close()
            raise
        try:
            if is_own:
                self._loaded = testbed_object.behind(
                    p4_program.folder(self._own["program"]), self._testbeds, len(ports)
                )
                own_program.fill(self._loaded.driver, self._own["entries"])
            self._map = PortMap(self._loaded.map_fd("ports"))
            self._links = LinkMaps(*map(self._loaded.map_fd, ("links", "traces", ebpf_links.ORIGIN)))
            for device, number in self._numbers.items():
                index = netlink.index(device)
                self._map.write(number, Port(index))
                self._loaded.set_port_of(index, number)
            self._tables = TestbedTables(self._testbeds.driver, own_ports, stations, self._testbeds.most_copies)
            if is_own:
                self._testbeds.driver.set_default("forward", "send", {"port": own_program.NEXT})
            for device, number in self._numbers.items():
                front = [(ebpf_ports.FRONT, self._testbeds.program_fd)] if is_own else []
                own = [ebpf_ports.FILTER, *(f"{ebpf_ports.FILTER}_{again}" for again in range(self._loaded.rounds))]
                ingress.attach(device, *front, *((name, self._loaded.program_fd) for name in own))
                self._counting = self._counting or ebpf_ports.steer_to_single_cpu(device, number)
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
        self._physical.close()
        self._loaded.close()
        self._testbeds.close()

    def unavailable(self, what: str) -> str:
        if what in SWITCH_PARAMETERS or what == "ecn_threshold":
            return ""
        if what not in PORT_PARAMETERS:
            return f"a port has no {what}"
        if what == "aqm":
            return ebpf_aqm.unavailable()
        if self._missing is None:
            self._missing = qdisc.unavailable("fq")
        return f"{self._missing}, which lets packets go at their time" if self._missing else ""

    def read(self, port: str, what: str) -> Value:
        if what in self._own:
            return self._own[what]
        if what in SWITCH_PARAMETERS:
            return self._tables.read(what)
        number = self._number(port, what)
        if what == "ecn_threshold":
            return self._thresholds.get(port, UNSET[what])
        if managed := self._managed.get(port):
            ebpf_aqm.check(port, managed)
            return getattr(managed, what, 0) or UNSET[what]
        if what == "aqm":
            return UNSET[what]
        model = self._map.read(number)
        if model.timed and not ebpf_ports.has_clock(port):
            raise ApplyError(f"port {port}, {what}: want our fq as the root qdisc; got none")
        if what in ebpf_links.PARAMETERS:
            return getattr(self._link(number, model), what) or UNSET[what]
        return getattr(model, what) or UNSET[what]

    def _link(self, number: int, model: Port) -> Link:
        link = self._links.read(number) if model.changes else None
        return link or Link(model.rate or UNSET["rate"], model.delay)

    def apply(self, port: str, what: str, value: Value) -> None:
        if what not in SWITCH_PARAMETERS:
            self._number(port, what)
        reason = ebpf_aqm.unavailable(str(value)) if what == "aqm" else self.unavailable(what)
        if value != UNSET.get(what) and reason:
            raise (Unavailable if what == "aqm" else ApplyError)(f"port {port}, {what}: want {shown(value)}; {reason}")
        if what in self._own and value != self._own[what]:
            raise ApplyError(f"switch, {what}: want {shown(value)}; a switch has the one that it was started with")
        if what in self._own:
            return
        if what in SWITCH_PARAMETERS:
            self._tables.apply(what, value)
            self._clocks()
        else:
            try:
                if what == "aqm":
                    self._set_aqm(port, str(value))
                elif port in self._managed and what != "ecn_threshold":
                    self._set_managed(port, what, value)
                elif what in ebpf_links.PARAMETERS:
                    self._set_link(port, self._numbers[port], what, value)
                else:
                    self._set(port, self._numbers[port], what, 0 if value == "none" else int(value))
            except (TestbedError, ValueError) as error:
                raise ApplyError(f"port {port}, {what}: want {shown(value)}; {error}") from error

    def _set_link(self, port: str, number: int, what: str, value: Value) -> None:
        now = self._map.read(number)
        link = replace(self._link(number, now), **{what: value})
        if link.changes and not self._loaded.links:
            raise ApplyError("the program was loaded without links that change, as its point has none")
        self._links.write(number, link if link.changes else None)
        rate, delay = (0, 0) if link.changes else (0 if link.rate == "none" else int(link.rate), int(link.delay))
        kind = ebpf_ports.REORDERS if link.reorders else ebpf_ports.CHANGES if link.changes else ebpf_ports.STEADY
        after = Port(rate=rate, delay=delay, changes=kind)
        if after.timed:
            self._clock(port, after)
        fresh = {} if after.changes == now.changes == 0 else {"since_ns": 0, "backlog_nanobits": 0}
        self._map.change(number, rate=rate, delay=delay, changes=after.changes, **fresh)
        if not after.timed:
            self._clock(port, after)

    def _set_aqm(self, port: str, value: str) -> None:
        """Let the lab's qdisc model the port, or the program again; what waits there is lost."""
        number, before = self._numbers[port], self._managed.pop(port, None)
        if before:
            ebpf_aqm.remove(port)
            for what in ebpf_aqm.LINK:
                self.apply(port, what, getattr(before, what) or UNSET[what])
        if value == UNSET["aqm"]:
            return
        now = self._map.read(number)
        if now.changes or self._holding or port in self._thresholds:
            raise ApplyError("an AQM has a link that does not change, no ecn_threshold, and no delayed packets")
        managed = Managed(value, now.rate, now.delay, now.buffer, now.framing)
        ebpf_ports.set_clock(port, wanted=False)
        ebpf_aqm.put(port, managed)
        self._map.change(number, rate=0, delay=0, since_ns=0, backlog_nanobits=0)
        self._managed[port] = managed

    def _set_managed(self, port: str, what: str, value: Value) -> None:
        if value != UNSET[what] and (isinstance(value, str) or what not in ebpf_aqm.LINK):
            raise ApplyError("a port with an AQM has a link that does not change")
        if what in ebpf_aqm.LINK:
            changed: dict[str, Any] = {what: 0 if value == "none" else int(value)}
            managed = replace(self._managed[port], **changed)
            ebpf_aqm.put(port, managed)
            self._managed[port] = managed

    def _clock(self, port: str, model: Port) -> None:
        """fq where a packet may wait: with a queue for each packet where one may overtake another."""
        overtaken = self._holding or model.changes == ebpf_ports.REORDERS
        ebpf_ports.set_clock(port, wanted=model.timed or self._holding, single_queue=not overtaken)

    def _clocks(self) -> None:
        """After a change of the fates, which may let packets of any port wait."""
        if self._tables.holding == self._holding:
            return
        self._holding = self._tables.holding
        for port, number in self._numbers.items():
            if port in self._managed and self._holding:
                raise ApplyError(f"port {port}, fate: want {self._tables.fates()}; it has an AQM, which delays none")
            try:
                self._clock(port, self._map.read(number))
            except TestbedError as error:
                raise ApplyError(f"port {port}, fate: want {self._tables.fates()}; {error}") from error

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
        self._map.change(number, **{what: value})

    def _number(self, port: str, what: str) -> int:
        if port not in self._numbers:
            raise ApplyError(f"port {port}, {what}: want one of the ports {', '.join(self.ports)}")
        return self._numbers[port]

    def describe(self) -> dict[str, str]:
        flooding, most = "broadcast and multicast go to all other ports", self._loaded.most_copies
        if (count := len(self.ports)) > most + 1:
            flooding = f"a packet is copied to at most {most} ports and this switch has {count}: none is flooded"
        return {
            "forwarding": f"the P4 program testbed, {testbed_object.path().name}, translated to eBPF",
            "rate": self.unavailable("rate")
            or "exact; packets leave at the kernel's next timer tick of their nanosecond",
            "links that change": f"at most {schedule.MAX_STEPS} steps, {trace.MAX_OPPORTUNITIES} opportunities; times "
            "count from the start of the traffic",
            "flooding": flooding,
            "counting": self._counting or "exact; a port's packets come one after the other",
            "buffer": f"at most {MAX_BYTES} bytes; without a rate nothing waits and it has no effect",
            "aqm": self.unavailable("aqm") or "exact; the lab's kernel has the queue and the link of such a port",
            "ecn_threshold": f"at most {MAX_DEPTH} bytes: enq_qdepth has 19 bits",
        }

    def counters(self) -> list[dict[str, object]]:
        return [row for port in self.ports for row in (*qdisc.counters(port), *ebpf_ports.counters(port))]


def open_backend(ports: tuple[str, ...], forwarding: Stations) -> EbpfBackend:
    return EbpfBackend(ports, forwarding)


def open_narrow(ports: tuple[str, ...], forwarding: Stations, settings: Settings) -> EbpfBackend:
    """For one point, whose settings are known: (device or "", parameter) → value."""
    return EbpfBackend(ports, forwarding, settings)
