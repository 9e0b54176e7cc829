# SPDX-License-Identifier: Apache-2.0
"""Checks flows that make requests: needed parameters are set, no others are, and links can carry the load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from testctl_agent.params.flow import workload as words
from testctl_agent.spec import workload
from testctl_agent.spec.fate import parse

from testctl.core.path import changing, path_rates
from testctl.core.point import Point, PointFlow, numbered_flows
from testctl.plan.checks.setters import Setters, place_of, set_beyond
from testctl.plan.diagnostics import Problems
from testctl.plan.model import Assignment

_PACES = ("load", "arrival_rate", "every", "think")


def check_workloads(assignments: Sequence[Assignment], points: Sequence[Point], problems: Problems) -> None:
    """Add a problem for parameters that requests exclude, and for those that need `requests`."""
    setters = {(t.entity, t.param): index for index, a in enumerate(assignments) for t in a.targets}
    asking = {flow.name for point in points for flow in point.flows if flow.asks}
    if asking:
        for point in points:
            _point(point, setters, assignments, problems)
    for (name, param), index in setters.items():
        kinds = {target.kind for target in assignments[index].targets}
        if kinds == {"flow"} and param in words.SETS and name not in asking:
            problems.add(assignments[index].place, f"flow {name}, {param}: want [{name}, requests, N] with it")


def _point(point: Point, setters: Setters, assignments: Sequence[Assignment], problems: Problems) -> None:
    place = partial(place_of, setters, assignments, point)
    asking = [flow for flow in point.flows if flow.asks and (flow.name, "requests") in setters]
    for flow in asking:
        for param, why in _faults(flow, point, setters):
            problems.add(place(flow.name, param, "requests"), f"flow {flow.name}, {param}: {why}")
        for name in set_beyond(words.HONOURED, setters, assignments, point, flow.name):
            able = ", ".join(sorted(words.HONOURED))
            problems.add(place(flow.name, name), f"flow {flow.name}, {name}: one that makes requests has only {able}")
    total = sum(workload.count(flow.options) for flow in point.flows if flow.asks)
    if total > workload.MOST_REQUESTS and asking:
        last = asking[-1]
        want = f"want at most {workload.MOST_REQUESTS} requests of all flows of a point"
        problems.add(place(last.name, "requests"), f"flow {last.name}, requests: {want}; got {total}")
    for link, (load, flows) in _loads(point).items():
        requesting = [flow for flow in flows if flow in asking]
        if load >= 1 and requesting and not any(flow.options.get("overload") for flow in flows):
            last = requesting[-1]
            param = next(name for name in _PACES if name in last.options and (last.name, name) in setters)
            together = f" of {', '.join(flow.name for flow in flows)} together" if len(flows) > 1 else ""
            problems.add(
                place(last.name, param),
                f"flow {last.name}, {param}: want less than the rate of {link}, or [{last.name}, overload, on]; "
                f"got {load:.4g} of it{together}",
            )
    numbered = {flow.name for flow in numbered_flows(point.flows)}
    for (switch, param), _ in setters.items():
        for rule in parse(str(point.settings[switch]["fate"])) if param == "fate" and ":" not in switch else ():
            if rule.flow in {flow.name for flow in point.flows} - numbered:
                want = "want at most as many connections in the plan as a switch tells apart"
                problems.add(place(switch, "fate"), f"switch {switch}, fate: {want}, or no fate of {rule.flow}")


def _faults(flow: PointFlow, point: Point, setters: Setters) -> Iterator[tuple[str, str]]:
    """(parameter, fault)."""
    options = flow.options
    if flow.generator != words.GENERATOR:
        yield "generator", f"want {words.GENERATOR} for a flow that makes requests; got {flow.generator}"
    if "sizes" not in options:
        yield "requests", f"want also [{flow.name}, sizes, …]; got none"
    paces = [name for name in _PACES if (flow.name, name) in setters]
    if len(paces) > 1:
        yield paces[0], f"want one of {', '.join(_PACES)}; got {' and '.join(paces)}"
    if not paces:
        yield "requests", f"want also [{flow.name}, load, …] or [{flow.name}, arrival_rate, …]; got none"
    if "think" in options and not options.get("reverse"):
        yield "think", f"want also [{flow.name}, reverse, on]: it is a time after an answer; got none"
    if "think" in options and "connections" not in options:
        yield "think", f"want also [{flow.name}, connections, N], which ask again and again; got none"
    if "request_size" in options and not options.get("reverse"):
        yield (
            "request_size",
            f"want also [{flow.name}, reverse, on], so that there is an answer; got none",
        )
    if workload.connections(options) < workload.fanout(options):
        want = f"want at least {workload.fanout(options)}, as many as come at a time"
        yield "connections", f"{want}; got {workload.connections(options)}"
    if "load" in options and "rate" in changing(point, flow, back=flow.reversed):
        yield "load", f"want [{flow.name}, arrival_rate, …] on a path whose rate changes; got load"
    elif "load" in options and "sizes" in options and "arrival_rate" not in options:
        yield "load", f"want a rate on the path of flow {flow.name}, which load is a share of; got none"


def _loads(point: Point) -> dict[str, tuple[float, list[PointFlow]]]:
    """Link with a rate → offered load of the requests as a share of the rate, and the flows that offer it."""
    loads: dict[str, tuple[float, list[PointFlow]]] = {}
    for flow in point.flows:
        if not flow.asks or "arrival_rate" not in flow.options or "sizes" not in flow.options:
            continue
        mean = workload.parse(str(flow.options["sizes"])).mean * workload.fanout(flow.options)
        bits = float(flow.options["arrival_rate"]) * mean * 8
        for link, rate in path_rates(point, flow, back=flow.reversed).items():
            load, flows = loads.get(link, (0.0, []))
            loads[link] = (load + (bits / rate if rate else math.inf), [*flows, flow])
    return loads
