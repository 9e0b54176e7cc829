# SPDX-License-Identifier: Apache-2.0
"""Checks settings of switches that depend on each other: fates and flows, thresholds and buffers."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from testctl_agent.params.switch import telemetry
from testctl_agent.spec import fate
from testctl_agent.spec.flows import MAX_CONNECTIONS
from testctl_agent.spec.units import Bytes

from testctl.core.point import Point, numbered_flows
from testctl.plan.diagnostics import Problems, show, suggest
from testctl.plan.model import Assignment, Target
from testctl.plan.names import Names

FATE, THRESHOLD, BUFFER, TELEMETRY = "fate", "ecn_threshold", "buffer", "telemetry"
FATELESS = "netem"
"""The back end without fates: points with fates are skipped on it."""
MAX_CLASHES = 20


Setters = Mapping[tuple[str, str], tuple[int, Target]]


def check_switches(
    assignments: Sequence[Assignment], points: Sequence[Point], names: Names, problems: Problems
) -> None:
    """Add a problem for every fate of a flow that does not cross the switch or that telemetry would not show,
    and for every threshold above the port's buffer."""
    setters: dict[tuple[str, str], tuple[int, Target]] = {}
    for index, assignment in enumerate(assignments):
        for target in assignment.targets:
            setters[target.entity, target.param] = (index, target)
            if target.param == FATE and target.kind == "switch":
                flows = {flow.name: flow for flow in names.flows}
                for place, value in zip(assignment.places, target.values, strict=True):
                    for rule in fate.parse(str(value)):
                        who = f"switch {target.entity}, {FATE}: {fate.show((rule,))}"
                        if rule.flow not in flows:
                            known = ", ".join(flows)
                            hint = suggest(rule.flow, flows) or f"; want one of {known}"
                            problems.add(place, f"{who}: the plan has no flow named {show(rule.flow)}{hint}")
                            continue
                        links = names.topology.links_between(flows[rule.flow].source, flows[rule.flow].sink)
                        way = list(dict.fromkeys(entity for link in links for entity in link))
                        if target.entity not in way:
                            crossed = f"flow {rule.flow} goes {' - '.join(way)}"
                            problems.add(place, f"{who}: want a flow that crosses switch {target.entity}; {crossed}")
    if not problems:
        _room(setters, points, assignments, problems)
        _unseen(setters, points, assignments, problems)
    _thresholds(setters, points, assignments, problems)
    _ways(setters, names, assignments, problems)


def _ways(setters: Setters, names: Names, assignments: Sequence[Assignment], problems: Problems) -> None:
    """The bridge can't balance load: it has one way to each host."""
    for (switch, param), (index, target) in setters.items():
        if param != "backend" or not names.topology.ecmp:
            continue
        for place, value in zip(assignments[index].places, target.values, strict=True):
            if value == FATELESS:
                want = (
                    f"a back end that spreads connections over the ways of topology {names.topology.name}, such as ebpf"
                )
                problems.add(place, f"switch {switch}, backend: want {want}; got {value}")
                return


def _unseen(setters: Setters, points: Sequence[Point], assignments: Sequence[Assignment], problems: Problems) -> None:
    """Fates are verified by the switch's telemetry, which therefore has to be on."""
    reported: set[tuple[int, int]] = set()
    for (switch, param), (index, target) in setters.items():
        for point in points if param == FATE and target.kind == "switch" else ():
            values = point.settings[switch]
            rules = _parsed(str(values[FATE]))
            backend = str(values.get("backend", telemetry.BACKENDS[0]))
            blind = backend not in (*telemetry.BACKENDS, FATELESS)
            if rules and (blind or values.get(TELEMETRY) is False) and (index, point.levels[index]) not in reported:
                reported.add((index, point.levels[index]))
                who = f"switch {switch}, {FATE}: {fate.show(rules)}"
                want = f"a back end with telemetry ({', '.join(telemetry.BACKENDS)})" if blind else "telemetry on"
                got = backend if blind else "off"
                where = f"want {want} at this switch, or it is not known whether it happened; got {got}"
                problems.add(assignments[index].place_of(point.levels[index]), f"{who}: {where}")


def _room(setters: Setters, points: Sequence[Point], assignments: Sequence[Assignment], problems: Problems) -> None:
    """The switch numbers a limited count of connections; its tables hold a limited count of ranges."""
    fated = {entity: index for (entity, param), (index, t) in setters.items() if param == FATE and t.kind == "switch"}
    for point in points:
        parallel = {flow.name: flow.parallel for flow in numbered_flows(point.flows)}
        total = sum(parallel.values())
        for switch, index in fated.items():
            who, place = f"switch {switch}, {FATE}", assignments[index].place_of(point.levels[index])
            rules = _parsed(str(point.settings[switch][FATE]))
            if rules and total > MAX_CONNECTIONS:
                problems.add(place, f"{who}: want at most {MAX_CONNECTIONS} connections in the plan; got {total}")
            rows = sum(len(rule.ranges) * parallel.get(rule.flow, 0) for rule in rules)
            every = sum(parallel.get(rule.flow, 0) for rule in rules if rule.every)
            if max(rows, every) > fate.MAX_ROWS:
                want = f"at most {fate.MAX_ROWS} ranges, counted for each connection"
                problems.add(place, f"{who}: want {want}; got {max(rows, every)}")
            swaps = sum(parallel.get(flow, 0) for flow in {rule.flow for rule in rules if rule.action == "swap"})
            if swaps > fate.MAX_SWAPS:
                problems.add(place, f"{who}: want at most {fate.MAX_SWAPS} connections with a swap; got {swaps}")


def _thresholds(
    setters: Setters, points: Sequence[Point], assignments: Sequence[Assignment], problems: Problems
) -> None:
    """A queue never holds more than the buffer, so a threshold from there on would never mark."""
    ports = [port for port, param in setters if param == THRESHOLD]
    seen: set[tuple[str, int, int]] = set()
    for point in points if ports else ():
        for port in ports:
            values = point.settings.get(port, {})
            threshold, buffer = values.get(THRESHOLD), values.get(BUFFER)
            if not isinstance(threshold, int) or not isinstance(buffer, int) or threshold < buffer:
                continue
            key = (port, threshold, buffer)
            if key in seen or len(seen) >= MAX_CLASHES:
                continue
            seen.add(key)
            index, _ = setters[port, THRESHOLD]
            place = assignments[index].place_of(point.levels[index])
            want = f"less than the port's buffer, {Bytes(buffer)}, or it never marks"
            problems.add(place, f"port {port}, {THRESHOLD}: want {want}; got {Bytes(threshold)}")


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[fate.Fate, ...]:
    return fate.parse(text)
