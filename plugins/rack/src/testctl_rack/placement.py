# SPDX-License-Identifier: Apache-2.0
"""Assigns a plan's entities to the machines of a rack, and translates names in messages to and from agents.

The controller speaks of a plan's entities and of devices named as in a lab (a host's eth0, a switch's
port named like its neighbour); an agent knows its machine's name and devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from testctl.core.point import Point
from testctl.core.topology import Topology
from testctl.testbeds.network import HOST_DEVICE
from testctl_agent.params.flow.socket import IPV6
from testctl_agent.spec.errors import PlanError

from testctl_rack.inventory_file import Machine, Rack


@dataclass(frozen=True)
class Placement:
    """machines: the plan's entity → its machine."""

    machines: Mapping[str, Machine]

    def out(self, entity: str) -> str:
        """A plan's entity as its agent calls it: "switch:receiver" → "s1:beta"."""
        name, colon, port = entity.partition(":")
        there = self.machines[name].name
        return f"{there}:{self.machines[port].name}" if colon else there

    def back(self, agent: str, entity: str) -> str:
        """The inverse, for messages from the agent of this entity."""
        _, colon, port = entity.partition(":")
        names = {machine.name: name for name, machine in self.machines.items()}
        return f"{agent}:{names.get(port, port)}" if colon else agent

    def device(self, agent: str, device: str) -> str:
        """The machine's name for a lab's device name."""
        machine = self.machines[agent]
        if machine.kind == "host":
            return machine.device if device == HOST_DEVICE else device
        return machine.ports[self.machines[device].name] if device in self.machines else device

    def devices_back(self, agent: str) -> dict[str, str]:
        """Device of a machine → its name in a lab."""
        machine = self.machines[agent]
        if machine.kind == "host":
            return {machine.device: HOST_DEVICE}
        names = {other.name: name for name, other in self.machines.items()}
        return {device: names[to] for to, device in machine.ports.items() if to in names}

    def placed(self, point: Point) -> Point:
        """The point with the addresses of the rack instead of the plan's own (its id stays)."""
        hosts = {name: self.machines[name].address for name in point.topology.hosts}
        ipv6 = any(flow.family == IPV6 for flow in point.flows)
        known = {name: address for name in hosts if ipv6 and (address := self.machines[name].address6)}
        return replace(point, topology=replace(point.topology, hosts=hosts, hosts6=known))

    def lacks_ipv6(self, point: Point) -> str:
        """Why a flow of the point can't be had over IPv6 here: a host has no such address; "" when all have."""
        flows = [(flow, self.machines[host]) for flow in point.flows if flow.family == IPV6 for host in flow.ends]
        lacking = {str(machine): flow.name for flow, machine in flows if not machine.address6}
        return "; ".join(
            f"{machine}, testctl_address6: want its IPv6 address, for flow {flow} with family {IPV6}; got none"
            for machine, flow in lacking.items()
        )

    def to_json(self) -> dict[str, str]:
        return {name: machine.name for name, machine in self.machines.items()}


def place(topology: Topology, rack: Rack) -> Placement:
    """Assign a machine to every entity, so that each link of the topology is a cable of the rack.

    An entity is assigned to the machine that has its name or its testctl_entity, else to the first
    free one that fits.  Raises PlanError: what the plan wants and what the rack has.
    """
    kinds = {**dict.fromkeys(topology.switches, "switch"), **dict.fromkeys(topology.hosts, "host")}
    machines = _search(topology.switches, kinds, topology, rack, {})
    if machines is None:
        cables = [f"{to}-{switch.name}" for switch in rack.of_kind("switch") for to in switch.ports]
        raise PlanError(
            f"{rack.path}: the plan's topology does not fit: it needs {_count(list(kinds.values()))} joined as "
            f"{', '.join(f'{a}-{b}' for a, b in topology.links)}; the rack has "
            f"{_count([s.kind for s in rack.machines.values()])} joined as {', '.join(cables) or 'nothing'}"
            f"{_out_of_service(rack)}"
        )
    return Placement({name: machines[name] for name in topology.entities})


def _search(
    left: Sequence[str], kinds: Mapping[str, str], topology: Topology, rack: Rack, found: dict[str, Machine]
) -> dict[str, Machine] | None:
    """Switches depth first, since they are few; then the hosts, all of them or none."""
    if not left:
        return _seat(kinds, topology, rack, found)
    entity, *rest = left
    taken = {machine.name for machine in found.values()}
    for machine in _candidates(entity, kinds, rack):
        joined = all(rack.linked(machine.name, found[n].name) for n in topology.neighbours[entity] if n in found)
        if machine.name not in taken and joined:
            whole = _search(rest, kinds, topology, rack, {**found, entity: machine})
            if whole is not None:
                return whole
    return None


def _seat(
    kinds: Mapping[str, str], topology: Topology, rack: Rack, found: Mapping[str, Machine]
) -> dict[str, Machine] | None:
    """A machine for every host, given the switches' machines; None if they do not fit.

    A matching by augmenting paths: who is seated gives way where another place does as well.
    """
    fits = {
        host: [
            machine
            for machine in _candidates(host, kinds, rack)
            if all(n in found and rack.linked(machine.name, found[n].name) for n in topology.neighbours[host])
        ]
        for host in topology.hosts
    }
    sits: dict[str, str] = {}  # machine → host

    def place_host(host: str, visited: set[str]) -> bool:
        for machine in sorted(fits[host], key=lambda machine: machine.name in sits):  # the free ones first
            if machine.name in visited:
                continue
            visited.add(machine.name)
            if machine.name not in sits or place_host(sits[machine.name], visited):
                sits[machine.name] = host
                return True
        return False

    if not all(place_host(host, set()) for host in topology.hosts):
        return None
    return {**found, **{host: rack.machines[machine] for machine, host in sits.items()}}


def _candidates(entity: str, kinds: Mapping[str, str], rack: Rack) -> list[Machine]:
    """Machines of the entity's kind: only those that name the entity, if any; never those that name another one.

    A machine that is out of service is left out, also where it is the one that names the entity: the plan then does
    not fit.
    """
    same = rack.of_kind(kinds[entity])
    named = [machine for machine in same if entity in (machine.entity, machine.name)]
    machines = named or [s for s in same if s.entity not in kinds and s.name not in kinds]
    return [machine for machine in machines if not machine.out_of_service]


def _count(kinds: Sequence[str]) -> str:
    return f"{kinds.count('host')} host(s) and {kinds.count('switch')} switch(es)"


def _out_of_service(rack: Rack) -> str:
    """Which machines nobody is to use, and why, for an error; "" when there are none."""
    return "".join(
        f"; {machine} is out of service: {machine.out_of_service}"
        for machine in rack.machines.values()
        if machine.out_of_service
    )
