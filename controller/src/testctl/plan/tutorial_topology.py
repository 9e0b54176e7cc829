# SPDX-License-Identifier: Apache-2.0
"""Topologies as the tutorials of p4lang have them: topology.json, with hosts' addresses and the numbers of ports.

    {"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": […]}, …},
     "switches": {"s1": {…}, …},
     "links": [["h1", "s1-p1"], ["s1-p3", "s2-p3", "0", "0.5"], …]}

Taken are names, addresses, links and the numbers of ports.  What a plan states itself is not: routes and neighbours of
hosts (all are set), a switch's runtime_json, and latency and bandwidth of links.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.core.topology import Topology
from testctl.plan.fields import LONGEST_NAME, NAME
from testctl.plan.flows import BUILTIN
from testctl.plan.topology_links import check_links

MAX_PORT = 510
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_END = re.compile(r"(.+)-p([0-9]{1,3})")


@dataclass(frozen=True)
class TutorialTopology:
    """As a TopologyFile that has no parameters."""

    topology: Topology
    parameters: tuple[()] = ()

    def resolve(self, values: Mapping[str, int]) -> Topology:
        return self.topology


def read_tutorial(path: Path, text: str) -> TutorialTopology:
    """Raises PlanError: the file, wanted, got."""
    try:
        raw = json.loads(text)
        return TutorialTopology(_topology(path.stem, raw))
    except json.JSONDecodeError as error:
        raise PlanError(f"{path}:{error.lineno}:{error.colno}: want JSON; {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{path}: {error}") from error


def _topology(name: str, raw: Any) -> Topology:
    """Raises ValueError."""
    parts = {"hosts": dict, "switches": dict, "links": list}
    if not isinstance(raw, dict) or any(not isinstance(raw.get(part), kind) for part, kind in parts.items()):
        raise ValueError("want an object with hosts, switches and links")
    hosts, macs = {}, {}
    for host, about in raw["hosts"].items():
        if not isinstance(about, dict) or not isinstance(about.get("ip"), str) or not isinstance(about.get("mac"), str):
            raise ValueError(f"hosts, {host}: want ip and mac; got {str(about)[:60]}")
        try:
            hosts[host] = str(ipaddress.IPv4Interface(about["ip"]).ip)
        except ValueError as error:
            raise ValueError(f"hosts, {host}, ip: want an IPv4 address; got {about['ip'][:60]!r}") from error
        if not _MAC.fullmatch(about["mac"]):
            raise ValueError(f"hosts, {host}, mac: want a MAC address; got {about['mac'][:60]!r}")
        macs[host] = about["mac"].lower()
    for node in (*hosts, *raw["switches"]):
        if not NAME.fullmatch(node) or len(node) > LONGEST_NAME:
            raise ValueError(f"want names of a-z, 0-9 and _ that begin with a letter; got {node[:60]!r}")
        if node in BUILTIN:
            raise ValueError(f"the name {node} is that of a group of every plan")
    for what, values in (("address", hosts), ("MAC address", macs)):
        if twice := next((value for value in values.values() if list(values.values()).count(value) > 1), None):
            raise ValueError(f"hosts: want an {what} once; {twice} is there twice")
    links, ports = [], {switch: dict[int, str]() for switch in raw["switches"]}
    for link in raw["links"]:
        if not isinstance(link, list) or len(link) < 2 or not all(isinstance(end, str) for end in link[:2]):
            raise ValueError(f'links: want two ends, such as ["h1", "s1-p1"]; got {str(link)[:60]}')
        ends = [_end(end, hosts, ports) for end in link[:2]]
        links.append((ends[0][0], ends[1][0]))
        for (switch, number), (other, _) in (ends, ends[::-1]):
            if switch in ports:
                if number in ports[switch]:
                    raise ValueError(f"links: want {switch}-p{number} once; {str(link)[:60]} has it again")
                ports[switch][number] = other
    for switch, numbered in ports.items():
        if sorted(numbered) != list(range(1, len(numbered) + 1)):
            raise ValueError(f"links: want ports 1 to {len(numbered)} of {switch}; got {sorted(numbered)}")
        if len(set(numbered.values())) < len(numbered):
            raise ValueError(f"links: want one link between {switch} and each neighbour")
    order = {switch: tuple(other for _, other in sorted(numbered.items())) for switch, numbered in ports.items()}
    topology = Topology(name, {}, hosts, tuple(ports), tuple(links), macs=macs, order=order, ecmp=True)
    check_links(topology)
    return topology


def _end(text: str, hosts: Mapping[str, str], ports: Mapping[str, Mapping[int, str]]) -> tuple[str, int]:
    """An end of a link: a host and 0, or a switch and its port."""
    if text in hosts:
        return text, 0
    found = _END.fullmatch(text)
    if found is None or found[1] not in ports or not 1 <= int(found[2]) <= MAX_PORT:
        raise ValueError(f"links: want a host, or a port of a switch such as s1-p1; got {text[:60]!r}")
    return found[1], int(found[2])
