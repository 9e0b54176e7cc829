# SPDX-License-Identifier: Apache-2.0
"""From a point of a plan to what a testbed gets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace

from testctl_agent.params import others, partitions, registry
from testctl_agent.params.flow.command import GENERATOR as COMMAND
from testctl_agent.params.flow.command import SIDES
from testctl_agent.params.flow.socket import IPV4, IPV6
from testctl_agent.params.flow.traffic import duration_ns
from testctl_agent.params.flow.workload import last_ns
from testctl_agent.params.port import link
from testctl_agent.params.switch import telemetry
from testctl_agent.spec import aqm, p4_program, schedule
from testctl_agent.spec import flows as connections
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value
from testctl_agent.system.identity import version

from testctl.core.point import Part, Point, PointFlow, PointSpec, TimedFlow, is_background, numbered_flows
from testctl.plan.entries import rows_of
from testctl.system import p4_programs
from testctl.testbeds.network import BRIDGED, HOST_DEVICE

DEFAULT_KERNEL = "6.12"
DEFAULT_BACKEND = "ebpf"
LOCAL_PORTS = "net.ipv4.ip_local_port_range"
"""A command's connections have the ports of its flow because its host has no others to choose from."""
ORIGIN = "link_origin"
"""The collector that gives a switch the start of the traffic, from which the times of its links count."""
_FAMILIES = {IPV4: "inet", IPV6: "inet6"}
"""As the collector of tcp_info has them."""
BYTES_LIMIT_NS = 120 * 10**9
"""How long a flow with a number of bytes may take when the plan gives it no duration."""


def kernel_of(point: Point) -> str:
    """The kernel of a point's first host, and of its switches."""
    return next((_kernel(point, host) for host in point.topology.hosts), DEFAULT_KERNEL)


def _kernel(point: Point, host: str) -> str:
    return _setting(point, host, "kernel") or DEFAULT_KERNEL


def kernels_of(point: Point) -> tuple[str, ...]:
    """The names of all kernels that a point runs on, without duplicates."""
    return tuple(dict.fromkeys(part.kernel for part in parts_of(point))) or (kernel_of(point),)


def on_kernel(points: Iterable[Point], name: str) -> list[Point]:
    """The points that run on a kernel, each with nothing but the settings and flows of the entities that are on it."""
    chosen = []
    for point in points:
        if name not in kernels_of(point):
            continue
        for names in [part.entities for part in parts_of(point) if part.kernel != name]:
            point = replace(
                point,
                settings={who: values for who, values in point.settings.items() if who.partition(":")[0] not in names},
                flows=tuple(flow for flow in point.flows if not {*flow.ends} <= {*names}),
            )
        chosen.append(point)
    return chosen


def parts_of(point: Point) -> tuple[Part, ...]:
    """The kernels of a point and who is on each, by `kernel` and `partition`; switches have the first host's.

    Hosts that were added for background traffic are with their switch.  () where there is only one kernel.
    """
    of_switches = kernel_of(point)
    by_kernel: dict[tuple[str, str, str], list[str]] = {}
    added = {host for flow in point.flows if is_background(flow.name) for host in (flow.source, f"{flow.source}sink")}
    for name in point.topology.entities:
        who = point.topology.neighbours[name][0] if name in added else name
        partition = _setting(point, who, "partition") or partitions.SHARED
        alone = who if partition == partitions.OWN else ""
        kernel = of_switches if who in point.topology.switches else _kernel(point, who)
        by_kernel.setdefault((kernel, partition, alone), []).append(name)
    parts = tuple(Part(kernel, tuple(names)) for (kernel, *_), names in by_kernel.items())
    return parts if len(parts) > 1 else ()


def backend_of(point: Point) -> str:
    return next(
        (name for switch in point.topology.switches if (name := _setting(point, switch, "backend"))), DEFAULT_BACKEND
    )


def code_with_others(code: str, point: Point) -> str:
    """`code`, a hash of the agents' code, which also covers other distributions' where the point uses them.

    Raises TestbedError where such a distribution is not installed.
    """
    parameters = {(_kind(point, entity), name) for entity, values in point.settings.items() for name in values}
    packages = others.packages((flow.generator for flow in point.flows), backend_of(point), sorted(parameters))
    return hashlib.sha256(f"{code} {version(packages)}".encode()).hexdigest()[:16] if packages else code


def own_programs(point: Point) -> dict[str, str]:
    """Switch -> its P4 program, where it is not the testbed's."""
    programs = {switch: _setting(point, switch, "program") for switch in point.topology.switches}
    return {switch: program for switch, program in programs.items() if program not in ("", p4_program.NONE)}


def _setting(point: Point, entity: str, parameter: str) -> str:
    return str(point.settings.get(entity, {}).get(parameter) or "")


def refuse_commands(points: Iterable[Point], allowed: bool) -> None:
    """Raises PlanError for points that would start programs of their plan on this machine, unless the user allows it.

    Every testbed that has the generator `command` calls it for each point that it runs.  A plan may be another
    person's: it is only data unless a point starts a program.
    """
    refused = {
        f"\n  point {point.id}, {flow.name}, {side}: {flow.options[side]}": None
        for point in points
        for flow in point.flows
        for side in SIDES
        if flow.generator == COMMAND and side in flow.options
    }
    if refused and not allowed:
        raise PlanError(
            f"the plan's command lines would be run on this machine; want --commands, if they may:{''.join(refused)}"
        )


def spec_of(point: Point) -> PointSpec:
    """The point as a testbed gets it: its settings split into state, collectors and flows.

    Hosts have IPv6 addresses where a flow is over IPv6: the topology's own, else fd00::N.
    """
    point = with_ipv6(point)
    state: dict[str, dict[str, Value]] = {}
    collect: dict[str, dict[str, dict[str, Value]]] = {name: {} for name in point.topology.entities}
    options = _collector_options(point)
    backend = backend_of(point)
    for switch in point.topology.switches if backend not in BRIDGED else ():
        state[switch] = {"flows": known_connections(point)}
    # A port's parameters may need its switch's (the buffer counts packets of the MTU).
    for entity, values in sorted(point.settings.items(), key=lambda item: ":" in item[0]):
        for parameter, value in values.items():
            spec = registry.find(_kind(point, entity), parameter)
            if parameter == "telemetry":
                if value is not False and backend in telemetry.BACKENDS:
                    collect[entity]["telemetry"] = {"devices": _devices(point, entity)}
            elif spec is not None and spec.role == "collector":
                if value not in (False, "off"):
                    interval = {} if isinstance(value, bool) else {"interval_ns": value}
                    collect[entity][parameter] = options | interval
            elif parameter != "backend" and (spec is None or spec.role not in ("traffic", "testbed")):
                state.setdefault(entity, {})[parameter] = value
    for switch, program in own_programs(point).items():
        collect[switch]["p4_state"] = {"devices": _devices(point, switch), "program": p4_program.key(program)}
        layout = p4_programs.layout_of(program)
        if (entries := _setting(point, switch, "entries")) not in ("", p4_program.NONE):
            rows = rows_of(entries, layout, point.topology, switch)
            state[switch]["entries"] = p4_program.show_entries(rows.to_json())
    changing = (entity for entity, values in state.items() if ":" in entity and _changes(values))
    for switch in sorted({entity.partition(":")[0] for entity in changing}):
        if backend not in link.CONSTANT:
            collect[switch][ORIGIN] = {"devices": _devices(point, switch), "at_t0": True}
    managed = (entity for entity, values in state.items() if values.get("aqm", aqm.NONE) != aqm.NONE)
    for switch in sorted({entity.partition(":")[0] for entity in managed}):
        if "telemetry" in collect[switch]:
            collect[switch]["port_queue"] = {"devices": _devices(point, switch)}
    for flow in point.flows:
        if flow.generator == COMMAND:
            ports_of = f"{flow.client_port} {flow.client_port + flow.parallel - 1}"
            state.setdefault(flow.source, {})[LOCAL_PORTS] = ports_of
    return PointSpec(
        **{field.name: getattr(point, field.name) for field in fields(Point) if field.name != "flows"},
        flows=tuple(_timed(flow) for flow in point.flows),
        state=state,
        # Counters come first, so that they are read before and after everything else.
        collect={name: {"counters": {"devices": _devices(point, name)}, **others} for name, others in collect.items()},
        limit_ns=BYTES_LIMIT_NS + max((last_ns(flow.options) for flow in point.flows if flow.asks), default=0),
        kernel=kernel_of(point),
        backend=backend,
        parts=parts_of(point),
    )


def _changes(values: Mapping[str, Value]) -> bool:
    """Whether a port's link changes over time."""
    texts = (values.get(name) for name in ("rate", "delay", "down", "jitter"))
    changes = any(isinstance(text, str) and text != schedule.NONE for text in texts)
    return changes or values.get("largest", schedule.NONE) != schedule.NONE


def _kind(point: Point, entity: str) -> str:
    if ":" in entity:
        return "port"
    return "host" if entity in point.topology.hosts else "switch"


def _devices(point: Point, name: str) -> str:
    return HOST_DEVICE if name in point.topology.hosts else ",".join(point.topology.neighbours[name])


def with_ipv6(point: Point) -> Point:
    """The point with IPv6 addresses of its hosts where a flow needs them."""
    if point.topology.hosts6 or all(flow.family != IPV6 for flow in point.flows):
        return point
    return replace(point, topology=point.topology.with_hosts6())


def known_connections(point: Point) -> str:
    """Every connection that a switch is to tell apart, as its parameter `flows` wants them; ids are its order."""
    address = point.topology.address
    return connections.show(
        connections.Connection(
            flow.name, conn, address(flow.source, flow.family), flow.client_port + conn,
            address(flow.sink, flow.family), flow.server_port, flow.reversed,
        )
        for flow in numbered_flows(point.flows)
        for conn in range(flow.parallel)
    )  # fmt: skip


def port_list(ports: Iterable[int]) -> str:
    """As tgen takes them, "5001,5003-5099": listed one by one, the ports of a hundred flows would be too long."""
    runs: list[list[int]] = []
    for port in sorted(set(ports)):
        if runs and port == runs[-1][-1] + 1:
            runs[-1].append(port)
        else:
            runs.append([port])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def _collector_options(point: Point) -> dict[str, Value]:
    """The options that every collector of a host gets."""
    options: dict[str, Value] = {"device": HOST_DEVICE, "ports": port_list(flow.server_port for flow in point.flows)}
    families = {flow.family for flow in point.flows}
    if IPV6 in families:
        options["family"] = ",".join(_FAMILIES[family] for family in sorted(families))
    return options


def _timed(flow: PointFlow) -> TimedFlow:
    """A flow with its times; `start` is no longer among its options."""
    options = {name: value for name, value in flow.options.items() if name != "start"}
    return TimedFlow(
        **(vars(flow) | {"options": options}),
        start_ns=int(flow.options.get("start", 0)),
        duration_ns=duration_ns(options),
    )
