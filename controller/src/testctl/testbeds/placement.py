# SPDX-License-Identifier: Apache-2.0
"""Which station of a rack is which entity of a plan, and the names on either side of the wire.

The controller speaks of a plan's entities and of devices named as in a lab (a host's eth0, a switch's
port named like its neighbour); an agent knows its station's name and devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from testctl_agent.spec.errors import PlanError

from testctl.core.point import Point
from testctl.core.topology import Topology
from testctl.testbeds.inventory_file import Rack, Station
from testctl.testbeds.network import HOST_DEVICE


@dataclass(frozen=True)
class Placement:
    """stations: the plan's entity → its station."""

    stations: Mapping[str, Station]

    def out(self, entity: str) -> str:
        """A plan's entity as its agent calls it: "switch:receiver" → "s1:beta"."""
        name, colon, port = entity.partition(":")
        there = self.stations[name].name
        return f"{there}:{self.stations[port].name}" if colon else there

    def back(self, agent: str, entity: str) -> str:
        """And back, for what the agent of this plan's entity says."""
        _, colon, port = entity.partition(":")
        names = {station.name: name for name, station in self.stations.items()}
        return f"{agent}:{names.get(port, port)}" if colon else agent

    def device(self, agent: str, device: str) -> str:
        """A lab's name of a device as it is called on the station."""
        station = self.stations[agent]
        if station.kind == "host":
            return station.device if device == HOST_DEVICE else device
        return station.ports[self.stations[device].name] if device in self.stations else device

    def devices_back(self, agent: str) -> dict[str, str]:
        """Device of a station → its name in a lab."""
        station = self.stations[agent]
        if station.kind == "host":
            return {station.device: HOST_DEVICE}
        names = {other.name: name for name, other in self.stations.items()}
        return {device: names[to] for to, device in station.ports.items() if to in names}

    def placed(self, point: Point) -> Point:
        """The point with the addresses of the rack instead of the plan's own (its id stays)."""
        hosts = {name: self.stations[name].address for name in point.topology.hosts}
        return replace(point, topology=replace(point.topology, hosts=hosts))

    def to_json(self) -> dict[str, str]:
        return {name: station.name for name, station in self.stations.items()}


def place(topology: Topology, rack: Rack) -> Placement:
    """Find a station for every entity, so that each link of the topology is a cable of the rack.

    An entity goes to the station that bears its name or names it as testctl_entity, else to the first
    free one that fits.  Raises PlanError: what the plan wants and what the rack has.
    """
    kinds = {**dict.fromkeys(topology.switches, "switch"), **dict.fromkeys(topology.hosts, "host")}
    found = _search(topology.switches, kinds, topology, rack, {})
    if found is None:
        raise PlanError(
            f"{rack.path}: no room for the plan's topology: it wants {_count(list(kinds.values()))} joined as "
            f"{', '.join(f'{a}-{b}' for a, b in topology.links)}; the rack has "
            f"{_count([s.kind for s in rack.stations.values()])} joined as {_joints(rack)}"
        )
    return Placement({name: found[name] for name in topology.entities})


def _search(
    left: Sequence[str], kinds: Mapping[str, str], topology: Topology, rack: Rack, found: dict[str, Station]
) -> dict[str, Station] | None:
    """Switches depth first, since they are few; then the hosts, all of them or none."""
    if not left:
        return _seat(kinds, topology, rack, found)
    entity, *rest = left
    taken = {station.name for station in found.values()}
    for station in _candidates(entity, kinds, rack):
        joined = all(rack.linked(station.name, found[n].name) for n in topology.neighbours[entity] if n in found)
        if station.name not in taken and joined:
            whole = _search(rest, kinds, topology, rack, {**found, entity: station})
            if whole is not None:
                return whole
    return None


def _seat(
    kinds: Mapping[str, str], topology: Topology, rack: Rack, found: Mapping[str, Station]
) -> dict[str, Station] | None:
    """A station for every host, when the switches have theirs; None at once where there is no room.

    A matching by augmenting paths: who is seated gives way where another place does as well.
    """
    fits = {
        host: [
            station
            for station in _candidates(host, kinds, rack)
            if all(n in found and rack.linked(station.name, found[n].name) for n in topology.neighbours[host])
        ]
        for host in topology.hosts
    }
    sits: dict[str, str] = {}  # station → host

    def place_one(host: str, asked: set[str]) -> bool:
        for station in sorted(fits[host], key=lambda one: one.name in sits):  # the free ones first
            if station.name in asked:
                continue
            asked.add(station.name)
            if station.name not in sits or place_one(sits[station.name], asked):
                sits[station.name] = host
                return True
        return False

    if not all(place_one(host, set()) for host in topology.hosts):
        return None
    return {**found, **{host: rack.stations[station] for station, host in sits.items()}}


def _candidates(entity: str, kinds: Mapping[str, str], rack: Rack) -> list[Station]:
    """Stations of the entity's kind; those that were meant come alone, those meant for another not at all."""
    same = rack.of_kind(kinds[entity])
    meant = [station for station in same if entity in (station.entity, station.name)]
    return meant or [s for s in same if s.entity not in kinds and s.name not in kinds]


def _count(kinds: Sequence[str]) -> str:
    return f"{kinds.count('host')} host(s) and {kinds.count('switch')} switch(es)"


def _joints(rack: Rack) -> str:
    return ", ".join(f"{to}-{s.name}" for s in rack.of_kind("switch") for to in s.ports) or "nothing"
