# SPDX-License-Identifier: Apache-2.0
"""The words a plan may use for entities: hosts, switches, ports, flows and groups of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testctl.core.topology import Topology
from testctl.plan.diagnostics import Problems, show, suggest
from testctl.plan.fields import name_of, words_of
from testctl.plan.flows import LONGEST, Groups
from testctl.plan.model import Flow
from testctl.plan.yaml_reader import Mapping as MappingNode
from testctl.plan.yaml_reader import Node, what


@dataclass(frozen=True)
class Names:
    """What every word means."""

    topology: Topology
    flows: tuple[Flow, ...]
    groups: Mapping[str, tuple[str, ...]]

    def canonical(self, word: str) -> str:
        """The name of what a word means: of a host that is alone, sender1 is sender; in ports too."""
        return ":".join(self.topology.aliases.get(part, part) for part in word.split(":"))

    def kind(self, word: str) -> str:
        """host, switch, port, flow or group; "" for a word that means nothing."""
        word = self.canonical(word)
        if word in self.topology.hosts:
            return "host"
        if word in self.topology.switches:
            return "switch"
        if word in self.topology.all_ports:
            return "port"
        if any(word == flow.name for flow in self.flows):
            return "flow"
        return "group" if word in self.groups else ""

    def members(self, word: str) -> tuple[str, ...]:
        return self.groups.get(word, (self.canonical(word),))

    def _no_link(self, word: str) -> str:
        """The complaint about a link that is none between two switches; "" for another word."""
        a, dash, b = word.partition("-")
        ends = {self.canonical(a), self.canonical(b)}
        if not dash or not ends <= {*self.topology.hosts, *self.topology.switches}:
            return ""
        of_host = [end for end in ends if end in self.topology.hosts]
        if len(of_host) == 1 and self.topology.neighbours[of_host[0]][0] in ends:
            (switch,) = ends - set(of_host)
            return (
                f"link {word}: want one between two switches; a host's end has no port, so set {switch}:{of_host[0]}, "
                f"the way to {of_host[0]}"
            )
        return f"link {word}: the topology has no such link"

    @property
    def known(self) -> list[str]:
        flows = [flow.name for flow in self.flows]
        return [*self.topology.hosts, *self.topology.switches, *self.topology.all_ports, *flows, *self.groups]

    def unknown(self, word: str) -> str:
        """The complaint about a word that means nothing."""
        switch, _, neighbour = word.partition(":")
        if neighbour and switch in self.topology.switches:
            ports = ", ".join(self.topology.ports(switch))
            return f"switch {switch} has no port toward {show(neighbour)}; its ports are {ports}"
        if why := self._no_link(word):
            return why
        names = [*self.topology.hosts, *self.topology.switches]
        some = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        hint = suggest(word, self.known) or f"; topology {self.topology.name} has {some}"
        return f"no host, switch, port, flow or group named {show(word)}{hint}"


def links_of(topology: Topology) -> dict[str, tuple[str, ...]]:
    """The links between switches, by the names of their ends in both orders ("left-right"): their two ports."""
    links: dict[str, tuple[str, ...]] = {}
    for a, b in topology.links:
        if a in topology.switches and b in topology.switches:
            links[f"{a}-{b}"] = (f"{a}:{b}", f"{b}:{a}")
            links[f"{b}-{a}"] = (f"{b}:{a}", f"{a}:{b}")
    return links


def read_names(
    node: Node | None, topology: Topology, flows: tuple[Flow, ...], of_flows: Groups, problems: Problems
) -> Names:
    """All names, with the groups of the topology, the builtin ones and `groups: {NAME: [MEMBER, …]}`.

    A member may be a group that stands above it.
    of_flows: the groups of flows that patterns made
    """
    groups: dict[str, tuple[str, ...]] = {
        "hosts": tuple(topology.hosts),
        "switches": topology.switches,
        "flows": tuple(flow.name for flow in flows),
        "all": (*topology.hosts, *topology.switches),
        **topology.groups,
        **of_flows,
        **links_of(topology),
    }
    names = Names(topology, flows, groups)
    if node is not None and not isinstance(node, MappingNode):
        problems.add(node.place, f"groups: want a mapping such as {{ends: [sender, receiver]}}; got {what(node)}")
        return names
    for key, value in node.entries if node else ():
        if name_of(key, "group", problems, LONGEST) is None:
            continue
        if names.kind(key.text):
            problems.add(key.place, f"group {key.text}: the name is taken by a {names.kind(key.text)}")
            continue
        members: list[str] = []
        for word in words_of(value, f"group {key.text}", problems):
            if names.kind(word.text):
                members += [m for m in names.members(word.text) if m not in members]
            else:
                problems.add(word.place, f"group {key.text}: {names.unknown(word.text)}")
        if not members:
            problems.add(value.place, f"group {key.text}: want at least one member; got none")
        groups[key.text] = tuple(members)
    return names
