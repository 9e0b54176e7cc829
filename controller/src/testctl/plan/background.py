# SPDX-License-Identifier: Apache-2.0
"""Background traffic of ports, as hosts and flows of a point.

A port `s:n` with background gets a host bgN at switch s, which sends requests to the host n or, where n is a switch,
to a host bgNsink there.  Nothing of them is captured; their requests are recorded, as of every flow that makes some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from testctl_agent.params.flow.traffic import estimated_end_ns
from testctl_agent.spec import background, workload
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value

from testctl.core.path import port_link, port_setting
from testctl.core.point import Point, PointFlow
from testctl.core.topology import Topology
from testctl.plan.flows import MAX_FLOWS
from testctl.plan.model import WrittenPlan
from testctl.plan.topology_file import MAX_NODES

NAME = "background"
_SHARED = ("kernel",)
"""Parameters of hosts that all must have alike."""


@dataclass(frozen=True)
class _Source:
    """Background that some point has: its place among the plan's, and the port."""

    number: int
    switch: str
    neighbour: str
    of_host: bool

    @property
    def flow(self) -> str:
        return f"{NAME}{self.number}"

    @property
    def ends(self) -> tuple[str, str]:
        return f"bg{self.number}", self.neighbour if self.of_host else f"bg{self.number}sink"

    @property
    def links(self) -> dict[str, str]:
        """Host that is made -> the switch where it stands."""
        start, end = self.ends
        return {start: self.switch} | ({} if self.of_host else {end: self.neighbour})


def _sources(plan: WrittenPlan) -> Iterator[_Source]:
    named = {target.entity for one in plan.assignments if one.param == NAME for target in one.targets}
    for number, port in enumerate((port for port in plan.topology.all_ports if port in named), start=1):
        switch, _, neighbour = port.partition(":")
        yield _Source(number, switch, neighbour, neighbour in plan.topology.hosts)


def add_background(plan: WrittenPlan, point: Point, ports: tuple[int, int]) -> Point:
    """The point with the hosts and flows of its ports' background; as it is where there is none.

    ports  the next free server port, and client port of flows that make requests
    Raises PlanError with the place of the tuple.
    """
    server_port, client_port = ports
    length_ns = max((estimated_end_ns(flow.options) for flow in point.flows), default=0)
    for one in _sources(plan):
        asked = background.parse(str(port_setting(point, one.switch, one.neighbour, NAME) or background.NONE))
        if asked is None:
            continue
        _check_names(plan, one)
        rate = port_link(point, one.switch, one.neighbour).mean_bps(0, length_ns)
        if not rate:
            _refuse(plan, one, "want a rate of the port, which the load is a share of; got none")
        mean = workload.parsed(asked.sizes).mean
        arrivals = asked.load * rate / 8 / mean
        count = round(arrivals * length_ns / 1e9)
        if count < 1:
            got = f"{arrivals * length_ns / 1e9:.3g} of them in {length_ns / 1e9:g} s"
            _refuse(plan, one, f"want at least one request while the other flows last; got a load that gives {got}")
        others = sum(workload.count(flow.options) for flow in point.flows if flow.asks)
        if count + others > workload.MOST_REQUESTS:
            want = f"want at most {workload.MOST_REQUESTS} requests: larger ones, a smaller load, or a shorter point"
            _refuse(plan, one, f"{want}; got {count} beside {others} of other flows")
        options: dict[str, Value] = {
            "requests": count, "sizes": asked.sizes, "arrival_rate": round(arrivals, 6), "generator": "tgen",
        }  # fmt: skip
        start, end = one.ends
        flow = PointFlow(one.flow, start, end, "tgen", server_port, client_port, workload.connections(options), options)
        server_port, client_port = server_port + 1, client_port + flow.parallel
        hosts = len(point.topology.entities) + len(one.links)
        if hosts > MAX_NODES or len(point.flows) >= MAX_FLOWS:
            want = f"want at most {MAX_NODES} hosts and switches and {MAX_FLOWS} flows, those of background among them"
            _refuse(plan, one, f"{want}; got {hosts} and {len(point.flows) + 1}")
        point = replace(
            point,
            flows=(*point.flows, flow),
            topology=_with_hosts(point.topology, one.links),
            settings=dict(point.settings) | _settings(point, one.links),
        )
    return point


def _with_hosts(topology: Topology, links: Mapping[str, str]) -> Topology:
    hosts = dict(topology.hosts)
    for host in links:
        hosts[host] = f"10.0.0.{len(hosts) + 1}"
    return replace(topology, hosts=hosts, links=(*topology.links, *links.items()))


def _settings(point: Point, links: Mapping[str, str]) -> dict[str, dict[str, Value]]:
    """Of hosts that are made: recorded nothing, the MTU of their switch, and what all hosts share."""
    shared = {name: value for name in _SHARED for host in point.topology.hosts
              if (value := point.settings.get(host, {}).get(name)) is not None}  # fmt: skip
    found = {}
    for host, switch in links.items():
        mtu = point.settings.get(switch, {}).get("mtu")
        found[host] = {"capture": False, "tcp_info": "off", **shared, **({} if mtu is None else {"mtu": mtu})}
    return found


def _check_names(plan: WrittenPlan, one: _Source) -> None:
    flows = {flow.name for flow in plan.flows}
    for name in (one.flow, *one.links):
        if name in flows or name in plan.topology.entities or name in plan.groups:
            _refuse(plan, one, f"want the name {name} for it; got a plan in which another has it")


def _refuse(plan: WrittenPlan, source: _Source, why: str) -> NoReturn:
    port = f"{source.switch}:{source.neighbour}"
    asked = [one for one in plan.assignments if one.param == NAME and any(t.entity == port for t in one.targets)]
    raise PlanError(f"{asked[-1].place}: port {port}, {NAME}: {why}")
