# SPDX-License-Identifier: Apache-2.0
"""What `testctl topologies` says of topologies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from testctl.core.topology import Topology
from testctl.plan import topology_dir, topology_names
from testctl.plan.topology import find_topology
from testctl.plan.topology_file import TopologyFile, read_topology


def listed() -> list[dict[str, Any]]:
    """The lab's topologies: name, about, and what parameters each takes."""
    files = [read_topology(topology_dir() / f"{name}.yaml") for name in topology_names()]
    return [{"name": file.name, "about": file.about, "takes": _takes(file)} for file in files]


def _takes(file: TopologyFile) -> str:
    return ", ".join(f"{p.name}={p.default} ({p.least} to {p.most})" for p in file.parameters)


def topology_of(name: str, sets: Sequence[str]) -> tuple[TopologyFile, Topology]:
    """The file and what it makes of these PARAM=N words.  Raises PlanError."""
    file = find_topology(name)
    return file, file.resolve(dict(file.parameter(word) for word in sets))


def page(file: TopologyFile, topology: Topology) -> str:
    """A topology with a drawing: its switches and their links."""
    lines = [f"{topology.name}: {file.about}" if file.about else topology.name]
    if file.parameters:
        given = ", ".join(f"{name}={n}" for name, n in topology.parameters.items())
        lines += [f"  takes     {_takes(file)}", f"  here      {given}"]
    lines += ["", *(f"  {line}" for line in drawing(topology)), ""]
    lines += [f"  hosts     {', '.join(f'{host} {address}' for host, address in topology.hosts.items())}"]
    lines += [f"  switch    {switch}, ports {', '.join(topology.ports(switch))}" for switch in topology.switches]
    lines += [f"  group     {name}: {', '.join(members)}" for name, members in topology.groups.items()]
    hosts = list(topology.hosts)
    changed = {p.name: n for p in file.parameters if (n := topology.parameters[p.name]) != p.default}
    inner = ", ".join(f"{name}: {n}" for name, n in changed.items())
    as_written = f"{{{topology.name}: {{{inner}}}}}" if inner else topology.name
    lines += ["", f"  topology: {as_written}", f"  flows: {{bulk: {hosts[0]} -> {hosts[-1]}}}"]
    return "\n".join(lines) + "\n"


def drawing(topology: Topology) -> list[str]:
    """The tree of links, from the first switch on; where there are several ways, each switch with its neighbours."""
    if not topology.switches:
        return list(topology.hosts)
    if topology.ecmp:
        return [line for name in topology.switches for line in (name, *_neighbours(topology, name))]
    first = topology.switches[0]
    return [first, *_below(topology, first, "", {first})]


def _neighbours(topology: Topology, name: str) -> Iterator[str]:
    others = sorted(topology.neighbours[name], key=lambda entity: entity in topology.switches)
    for number, other in enumerate(others, start=1):
        yield f"{'`-- ' if number == len(others) else '|-- '}{other}"


def _below(topology: Topology, name: str, indent: str, seen: set[str]) -> Iterator[str]:
    unseen = (entity for entity in topology.neighbours[name] if entity not in seen)
    others = sorted(unseen, key=lambda entity: entity in topology.switches)
    for number, other in enumerate(others, start=1):
        last = number == len(others)
        yield f"{indent}{'`-- ' if last else '|-- '}{other}"
        yield from _below(topology, other, indent + ("    " if last else "|   "), {*seen, other})
