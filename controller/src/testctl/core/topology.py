# SPDX-License-Identifier: Apache-2.0
"""Topologies: hosts, switches and their links.

A topology is a tree, unless it has several ways of equal cost between switches, over which they spread the
connections (ECMP).  A host has one link, to a switch, and the address 10.0.0.N with N its place in the file; where a
flow is over IPv6, fd00::N too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from testctl_agent.params.flow.socket import IPV6
from testctl_agent.spec.untrusted import Named, misfit

IPV6_PREFIX = "fd00::"

SHAPE = {
    "name?": str,
    "parameters?": Named(int),
    "hosts?": Named(str),
    "hosts6?": Named(str),
    "macs?": Named(str),
    "order?": Named([str]),
    "ecmp?": bool,
    "switches?": [str],
    "links?": [[str, str]],
    "groups?": Named([str]),
}


def mac(index: int) -> str:
    """The MAC address of the host with this place in a topology (locally administered)."""
    return f"02:00:00:00:{index >> 8:02x}:{index & 255:02x}"


@dataclass(frozen=True)
class Topology:
    """A topology with its parameters filled in.

    hosts      name -> IPv4 address, in order
    hosts6     name -> IPv6 address; empty where no flow needs one
    switches   names, in order
    links      pairs of names
    groups     name -> members, in order
    macs       name of a host -> its MAC address, where that is not the one of its place
    order      name of a switch -> its neighbours in the order of its ports, where that is not the order of the links
    ecmp       whether there may be several ways of equal cost between two switches
    aliases    alternative name in plans -> the name; not part of a point's identity
    """

    name: str = ""
    parameters: Mapping[str, int] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    switches: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict, compare=False)
    hosts6: Mapping[str, str] = field(default_factory=dict)
    ecmp: bool = False
    macs: Mapping[str, str] = field(default_factory=dict)
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def entities(self) -> tuple[str, ...]:
        """Hosts, then switches: the entities with an agent."""
        return (*self.hosts, *self.switches)

    def address(self, host: str, family: int) -> str:
        """A host's address of IP version 4 or 6; without hosts6 its address in the lab."""
        if family != IPV6:
            return self.hosts[host]
        return self.hosts6.get(host) or self.with_hosts6().hosts6[host]

    def with_hosts6(self) -> Topology:
        """The topology with the IPv6 addresses that its hosts have in the lab."""
        return replace(self, hosts6={host: f"{IPV6_PREFIX}{index:x}" for index, host in enumerate(self.hosts, 1)})

    def addresses(self, host: str) -> tuple[str, ...]:
        """All addresses of a host, IPv4's first."""
        return (self.hosts[host], *([self.hosts6[host]] if host in self.hosts6 else []))

    @cached_property
    def neighbours(self) -> dict[str, tuple[str, ...]]:
        """Name -> the names at the other ends of its links, in order."""
        neighbours: dict[str, list[str]] = {name: [] for name in self.entities}
        for end, other in self.links:
            neighbours.setdefault(end, []).append(other)
            neighbours.setdefault(other, []).append(end)
        return {name: self.order.get(name, tuple(others)) for name, others in neighbours.items()}

    @cached_property
    def all_macs(self) -> dict[str, str]:
        """Host -> MAC address, in order of the hosts."""
        return {host: self.macs.get(host, mac(index)) for index, host in enumerate(self.hosts, 1)}

    def ports(self, switch: str) -> tuple[str, ...]:
        """The ports of a switch, as "switch:neighbour"."""
        return tuple(f"{switch}:{neighbour}" for neighbour in self.neighbours[switch])

    @cached_property
    def all_ports(self) -> tuple[str, ...]:
        return tuple(port for switch in self.switches for port in self.ports(switch))

    def path(self, a: str, b: str) -> list[str]:
        """The entities from a to b, inclusive, on the first shortest path; [] if they are not linked."""
        came_from = {a: a}
        queue = [a]
        for name in queue:
            for neighbour in self.neighbours.get(name, ()):
                if neighbour not in came_from:
                    came_from[neighbour] = name
                    queue.append(neighbour)
        if b not in came_from:
            return []
        way = [b]
        while way[-1] != a:
            way.append(came_from[way[-1]])
        return way[::-1]

    @cached_property
    def _distances(self) -> dict[str, dict[str, int]]:
        """Host -> entity -> number of links between them."""
        distances = {}
        for host in self.hosts:
            distance = {host: 0}
            queue = [host]
            for name in queue:
                for neighbour in self.neighbours[name]:
                    if neighbour not in distance:
                        distance[neighbour] = distance[name] + 1
                        queue.append(neighbour)
            distances[host] = distance
        return distances

    def next_hops(self, switch: str) -> dict[str, tuple[str, ...]]:
        """Host -> the neighbours of a switch that are nearest to it, in order of the links."""
        hops = {}
        for host, distance in self._distances.items():
            nearest = distance[switch] - 1
            hops[host] = tuple(neighbour for neighbour in self.neighbours[switch] if distance.get(neighbour) == nearest)
        return hops

    def tree(self, switch: str) -> tuple[str, ...]:
        """The neighbours of a switch over links of a tree that has all switches and hosts."""
        reached = {self.switches[0]}
        queue = [self.switches[0]]
        links: set[frozenset[str]] = set()
        for name in queue:
            for neighbour in self.neighbours[name]:
                if neighbour not in reached:
                    reached.add(neighbour)
                    links.add(frozenset((name, neighbour)))
                    queue.append(neighbour)
        return tuple(neighbour for neighbour in self.neighbours[switch] if frozenset((switch, neighbour)) in links)

    def links_between(self, a: str, b: str) -> list[tuple[str, str]]:
        """The links of all shortest paths from host a to host b, in order of distance."""
        links: list[tuple[str, str]] = []
        edge: tuple[str, ...] = (a,)
        while edge and edge != (b,):
            hops = {name: self.neighbours[a] if name == a else self.next_hops(name)[b] for name in edge}
            links += [(name, onward) for name, towards in hops.items() for onward in towards]
            edge = tuple(dict.fromkeys(onward for towards in hops.values() for onward in towards))
        return links

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "parameters": dict(self.parameters),
            "hosts": dict(self.hosts),
            "switches": list(self.switches),
            "links": [list(link) for link in self.links],
            "groups": {name: list(members) for name, members in self.groups.items()},
            **({"hosts6": dict(self.hosts6)} if self.hosts6 else {}),
            **({"macs": dict(self.macs)} if self.macs else {}),
            **({"order": {name: list(others) for name, others in self.order.items()}} if self.order else {}),
            **({"ecmp": True} if self.ecmp else {}),
        }

    @classmethod
    def from_json(cls, raw: Any) -> Topology:
        """The inverse of to_json; missing parts are empty.  Raises ValueError."""
        if why := misfit(raw, SHAPE):
            raise ValueError(f"topology: {why}")
        return cls(
            name=raw.get("name", ""),
            parameters=dict(raw.get("parameters", {})),
            hosts=dict(raw.get("hosts", {})),
            switches=tuple(raw.get("switches", ())),
            links=tuple((end, other) for end, other in raw.get("links", ())),
            groups={name: tuple(members) for name, members in raw.get("groups", {}).items()},
            hosts6=dict(raw.get("hosts6", {})),
            macs=dict(raw.get("macs", {})),
            order={name: tuple(others) for name, others in raw.get("order", {}).items()},
            ecmp=raw.get("ecmp", False),
        )
