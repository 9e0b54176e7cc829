# SPDX-License-Identifier: Apache-2.0
"""Reads `flows: {NAME: HOST -> HOST}`, where a host may be a pattern that stands for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from testctl.core.point import is_background
from testctl.core.topology import Topology
from testctl.plan.diagnostics import Problems, show, suggest
from testctl.plan.fields import name_of
from testctl.plan.model import Flow
from testctl.plan.yaml_reader import Mapping as MappingNode
from testctl.plan.yaml_reader import Node, Scalar, what

BUILTIN = ("hosts", "switches", "flows", "all")
"""Built-in groups."""
MAX_FLOWS = 200
LONGEST = 31
"""Greatest length of a flow's or group's name."""

Groups = Mapping[str, tuple[str, ...]]


def read_flows(node: Node | None, topology: Topology, problems: Problems) -> tuple[tuple[Flow, ...], Groups]:
    """The flows in the plan's order, and the groups of the flows that patterns made, by the entry's name."""
    flows: list[Flow] = []
    groups: dict[str, tuple[str, ...]] = {}
    if not isinstance(node, MappingNode) or not node.entries:
        if node is not None:
            problems.add(
                node.place, f"flows: want at least one, such as {{bulk: sender -> receiver}}; got {what(node)}"
            )
        return (), {}
    taken = {*topology.hosts, *topology.switches, *topology.groups, *topology.aliases, *BUILTIN}
    written = {key.text for key, _ in node.entries}
    for key, value in node.entries:
        if name_of(key, "flow", problems, LONGEST) is None:
            continue
        if is_background(key.text):
            problems.add(key.place, f"flow {key.text}: want another name: this is one of ports' background traffic")
            continue
        if key.text in taken:
            problems.add(key.place, f"flow {key.text}: the name is taken by a host, switch or group")
            continue
        pairs, several = _ends(key.text, value, topology, problems)
        expanded = [
            Flow(f"{key.text}{n}" if several else key.text, *ends, key.place) for n, ends in enumerate(pairs, 1)
        ]
        for flow in expanded if several else ():
            if flow.name in taken | written or len(flow.name) > LONGEST:
                fault = "is too long" if len(flow.name) > LONGEST else "is taken"
                problems.add(key.place, f"flow {key.text}: the name {flow.name} of the flow from {flow.source} {fault}")
        if several and expanded:
            groups[key.text] = tuple(flow.name for flow in expanded)
        flows += expanded
        if len(flows) > MAX_FLOWS:
            problems.add(key.place, f"flows: want at most {MAX_FLOWS}; got {len(flows)}, and maybe more")
            del flows[MAX_FLOWS:]
            break
    return tuple(flows), groups


def _ends(name: str, value: Node, topology: Topology, problems: Problems) -> tuple[list[tuple[str, str]], bool]:
    """(source and sink of each flow, whether one of the two is a pattern)."""
    ends = [end.strip() for end in value.text.split("->")] if isinstance(value, Scalar) else []
    if len(ends) != 2:
        problems.add(value.place, f"flow {name}: want HOST -> HOST; got {what(value)}")
        return [], False
    hosts = [_hosts(end, topology) for end in ends]
    for end, members in zip(ends, hosts, strict=True):
        if not members:
            problems.add(value.place, f"flow {name}: {_no_host(end, topology)}")
    if not all(hosts):
        return [], False
    several = any("*" in end or end in topology.groups or end == "hosts" for end in ends)
    pairs = _pairs(*hosts)
    if pairs is None:
        counts = f"{len(hosts[0])} and {len(hosts[1])}"
        problems.add(value.place, f"flow {name}: want one host on a side, or as many on both; got {counts} hosts")
        return [], several
    different = [(source, sink) for source, sink in pairs if source != sink]
    if not different or (len(different) < len(pairs) and not several):
        problems.add(value.place, f"flow {name}: want two different hosts; got {show(ends[0])} twice")
    return different, several


def _hosts(end: str, topology: Topology) -> tuple[str, ...]:
    """The hosts of an end: a host's name, a group, or a pattern such as h*."""
    host = topology.aliases.get(end, end)
    if host in topology.hosts:
        return (host,)
    groups = {**topology.groups, "hosts": tuple(topology.hosts)}
    named = [member for group, members in groups.items() if group == end for member in members]
    if "*" in end:
        fit = {host for host in topology.hosts if fnmatchcase(host, end)}
        fit |= {m for group, members in topology.groups.items() if fnmatchcase(group, end) for m in members}
        named = [host for host in topology.hosts if host in fit]
    return tuple(host for host in dict.fromkeys(named) if host in topology.hosts)


def _pairs(sources: Sequence[str], sinks: Sequence[str]) -> list[tuple[str, str]] | None:
    """One source with each sink, each source with one sink, or pairs in order; None if the counts differ."""
    if len(sources) == 1 or len(sinks) == 1:
        return [(source, sink) for source in sources for sink in sinks]
    return list(zip(sources, sinks, strict=True)) if len(sources) == len(sinks) else None


def _no_host(end: str, topology: Topology) -> str:
    the_hosts = f"; the hosts are {', '.join(list(topology.hosts)[:12])}{', …' if len(topology.hosts) > 12 else ''}"
    if "*" in end:
        return f"no host fits {show(end)}{the_hosts}"
    if end in topology.switches:
        return f"{end} is a switch{suggest(end, topology.hosts) or the_hosts}"
    return f"no host named {show(end)}{suggest(end, topology.hosts) or the_hosts}"
