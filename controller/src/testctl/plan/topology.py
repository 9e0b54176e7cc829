# SPDX-License-Identifier: Apache-2.0
"""Topologies: what hosts and switches there are and how they are linked.

A topology is a tree: bridges forward without spanning tree.  A host has one link, to a
switch, and the address 10.0.0.N with N its place in the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError


@dataclass(frozen=True)
class Topology:
    """A topology with its parameters filled in.

    hosts      name -> IPv4 address, in order
    switches   names, in order
    links      pairs of names
    groups     name -> members, in order
    """

    name: str
    parameters: Mapping[str, int]
    hosts: Mapping[str, str]
    switches: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def neighbours(self) -> dict[str, tuple[str, ...]]:
        """Name -> the names at the other ends of its links, in order."""
        found: dict[str, list[str]] = {name: [] for name in (*self.hosts, *self.switches)}
        for one, other in self.links:
            found[one].append(other)
            found[other].append(one)
        return {name: tuple(others) for name, others in found.items()}

    def ports(self, switch: str) -> tuple[str, ...]:
        """The ports of a switch, as "switch:neighbour"."""
        return tuple(f"{switch}:{neighbour}" for neighbour in self.neighbours[switch])

    @cached_property
    def all_ports(self) -> tuple[str, ...]:
        return tuple(port for switch in self.switches for port in self.ports(switch))

    def path(self, a: str, b: str) -> list[str]:
        """The entities from a to b, both included."""
        came_from = {a: a}
        queue = [a]
        for name in queue:
            for neighbour in self.neighbours[name]:
                if neighbour not in came_from:
                    came_from[neighbour] = name
                    queue.append(neighbour)
        way = [b]
        while way[-1] != a:
            way.append(came_from[way[-1]])
        return way[::-1]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "parameters": dict(self.parameters),
            "hosts": dict(self.hosts),
            "switches": list(self.switches),
            "links": [list(link) for link in self.links],
            "groups": {name: list(members) for name, members in self.groups.items()},
        }


def topology_dir() -> Path:
    """Where the topology files are: $TESTCTL_LAB/topologies, or lab/topologies of this repository."""
    lab = os.environ.get("TESTCTL_LAB")
    if lab:
        found = Path(lab) / "topologies"
        if not found.is_dir():
            raise PlanError(f"TESTCTL_LAB: want a directory with topologies/ in it; got {lab}")
        return found
    for parent in Path(__file__).resolve().parents:
        if (parent / "lab" / "topologies").is_dir():
            return parent / "lab" / "topologies"
    raise PlanError(
        "no lab/topologies above the installed testctl: set TESTCTL_LAB to the lab directory of the source tree"
    )


def topology_names(directory: Path | None = None) -> tuple[str, ...]:
    """The topologies there are: the names of their files."""
    return tuple(sorted(path.stem for path in (directory or topology_dir()).glob("*.yaml")))
