# SPDX-License-Identifier: Apache-2.0
"""Background traffic of ports, as hosts and flows of a point.

A port `s:n` with background gets a host bgN at switch s, which sends requests to the host n or, where n is a switch,
to a host bgNsink there.  These hosts capture no packets; the requests are recorded as those of any flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count as numbers_from
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


@dataclass(frozen=True)
class _Source:
    """A port with background traffic at some point, and its number in the plan."""

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
        """Added host -> its switch."""
        start, end = self.ends
        return {start: self.switch} | ({} if self.of_host else {end: self.neighbour})


def _sources(plan: WrittenPlan) -> Iterator[_Source]:
    named = {target.entity for a in plan.assignments if a.param == NAME for target in a.targets}
    for number, port in enumerate((port for port in plan.topology.all_ports if port in named), start=1):
        switch, _, neighbour = port.partition(":")
        yield _Source(number, switch, neighbour, neighbour in plan.topology.hosts)


def add_background(plan: WrittenPlan, point: Point, ports: tuple[int, int]) -> Point:
    """The point with the hosts and flows of its ports' background traffic added, if it has any.

    ports  the next free server port, and client port of flows that make requests
    Raises PlanError with the place of the tuple.
    """
    server_port, client_port = ports
    length_ns = max((estimated_end_ns(flow.options) for flow in point.flows), default=0)
    for source in _sources(plan):
        load = background.parse(str(port_setting(point, source.switch, source.neighbour, NAME) or background.NONE))
        if load is None:
            continue
        flows = {flow.name for flow in plan.flows}
        for name in (source.flow, *source.links):
            if name in flows or name in plan.topology.entities or name in plan.groups:
                _refuse(plan, source, f"want the name {name} for it; got a plan in which another has it")
        rate = port_link(point, source.switch, source.neighbour).mean_bps(0, length_ns)
        if not rate:
            _refuse(plan, source, "want a rate of the port, which the load is a share of; got none")
        mean = workload.parse(load.sizes).mean
        arrivals = load.load * rate / 8 / mean
        count = round(arrivals * length_ns / 1e9)
        if count < 1:
            got = f"{arrivals * length_ns / 1e9:.3g} of them in {length_ns / 1e9:g} s"
            _refuse(plan, source, f"want at least one request while the other flows last; got a load that gives {got}")
        others = sum(workload.count(flow.options) for flow in point.flows if flow.asks)
        if count + others > workload.MOST_REQUESTS:
            want = f"want at most {workload.MOST_REQUESTS} requests: larger ones, a smaller load, or a shorter point"
            _refuse(plan, source, f"{want}; got {count} beside {others} of other flows")
        options: dict[str, Value] = {
            "requests": count, "sizes": load.sizes, "arrival_rate": round(arrivals, 6), "generator": "tgen",
        }  # fmt: skip
        start, end = source.ends
        flow = PointFlow(
            source.flow, start, end, "tgen", server_port, client_port, workload.connections(options), options
        )
        server_port, client_port = server_port + 1, client_port + flow.parallel
        hosts = len(point.topology.entities) + len(source.links)
        if hosts > MAX_NODES or len(point.flows) >= MAX_FLOWS:
            want = f"want at most {MAX_NODES} hosts and switches and {MAX_FLOWS} flows, those of background among them"
            _refuse(plan, source, f"{want}; got {hosts} and {len(point.flows) + 1}")
        point = replace(
            point,
            flows=(*point.flows, flow),
            topology=_with_hosts(point.topology, source.links),
            settings=dict(point.settings) | _settings(point, source.links),
        )
    return point


def _with_hosts(topology: Topology, links: Mapping[str, str]) -> Topology:
    hosts = dict(topology.hosts)
    for host in links:
        free = (f"10.0.0.{number}" for number in numbers_from(len(hosts) + 1))
        hosts[host] = next(address for address in free if address not in hosts.values())
    order = {
        switch: (*others, *(host for host, at in links.items() if at == switch))
        for switch, others in topology.order.items()
    }
    return replace(topology, hosts=hosts, links=(*topology.links, *links.items()), order=order)


def _settings(point: Point, links: Mapping[str, str]) -> dict[str, dict[str, Value]]:
    """Settings of the added hosts: no recording, the MTU of their switch, and the kernel that switches have."""
    kernels = (point.settings.get(host, {}).get("kernel") for host in point.topology.hosts)
    kernel = next((name for name in kernels if name is not None), None)
    settings = {}
    for host, switch in links.items():
        mtu = point.settings.get(switch, {}).get("mtu")
        settings[host] = {
            "capture": False,
            "tcp_info": "off",
            **{name: value for name, value in (("kernel", kernel), ("mtu", mtu)) if value is not None},
        }
    return settings


def _refuse(plan: WrittenPlan, source: _Source, why: str) -> NoReturn:
    port = f"{source.switch}:{source.neighbour}"
    assignments = [
        assignment
        for assignment in plan.assignments
        if assignment.param == NAME and any(t.entity == port for t in assignment.targets)
    ]
    raise PlanError(f"{assignments[-1].place}: port {port}, {NAME}: {why}")
