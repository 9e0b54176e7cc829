# SPDX-License-Identifier: Apache-2.0
"""Checks what generators can't honour: of command, whose two programs have to be given, and of those that say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testctl_agent.params.flow import command

from testctl.core.point import Point, PointFlow
from testctl.core.testbed_kind import kind_of
from testctl.plan.checks.setters import place_of, set_beyond
from testctl.plan.diagnostics import Problems
from testctl.plan.model import Assignment


def check_commands(
    assignments: Sequence[Assignment], points: Sequence[Point], testbed: str, problems: Problems
) -> None:
    """Add a problem for parameters that a generator can't honour, and for commands that no point runs."""
    setters = {(t.entity, t.param): index for index, a in enumerate(assignments) for t in a.targets if t.kind == "flow"}
    running: set[str] = set()
    for point in points:
        command_flows = [flow for flow in point.flows if flow.generator == command.GENERATOR]
        for flow in command_flows:
            place = place_of(setters, assignments, point, flow.name, "generator")
            for why in _faults(flow, command_flows, testbed):
                problems.add(place, f"flow {flow.name}, generator command: {why}")
            for name in set_beyond(command.HONOURED, setters, assignments, point, flow.name):
                problems.add(
                    place_of(setters, assignments, point, flow.name, name),
                    f"flow {flow.name}, {name}: a command has only {', '.join(sorted(command.HONOURED))}; what else it "
                    "does its command line says",
                )
        running |= {flow.name for flow in command_flows}
        for flow in point.flows:
            for why in _refused(flow):
                names = why.partition(":")[0].split(", ")
                place = place_of(setters, assignments, point, flow.name, *names, "generator", "parallel")
                problems.add(place, f"flow {flow.name}, generator {flow.generator}: {why}")
    for (name, param), index in setters.items():
        if param in command.SIDES and name not in running:
            problems.add(assignments[index].place, f"flow {name}, {param}: want [{name}, generator, command] with it")


def _refused(flow: PointFlow) -> list[str]:
    """What the generator says that it can't honour."""
    options = {**flow.options, "parallel": flow.parallel}
    if flow.generator == "iperf3":
        from testctl_agent.generators import iperf3

        return iperf3.refuses(options)
    if flow.generator == "tgen" and "write_size" in options:
        from testctl_agent.generators import tgen

        return tgen.refuses(options)
    return []


def _faults(flow: PointFlow, commands: Sequence[PointFlow], testbed: str) -> Iterator[str]:
    if kind_of(testbed).name not in command.TESTBEDS:
        yield f"want {' or '.join(sorted(command.TESTBEDS))}: an agent on a rack runs no commands; got {testbed}"
    lacking = [side for side in command.SIDES if not flow.options.get(side)]
    if lacking:
        yield f"want a tuple [{flow.name}, {lacking[0]}, 'COMMAND …']; got none"
    if others := [other.name for other in commands if other.source == flow.source and other.name != flow.name]:
        yield f"want one such flow from host {flow.source}, whose local ports are the flow's; got also {others[0]}"
