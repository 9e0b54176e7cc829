# SPDX-License-Identifier: Apache-2.0
"""Checks P4 programs of the user's: they can be translated, and their rows fit them and the topology."""

from __future__ import annotations

from collections.abc import Sequence

from testctl_agent.spec.errors import ProgramError
from testctl_agent.spec.p4_program import NONE

from testctl.core.point import Point
from testctl.plan.diagnostics import Problems
from testctl.plan.entries import rows_of
from testctl.plan.model import Assignment
from testctl.system.p4_programs import layout_of

PROGRAM, ENTRIES = "program", "entries"


def check_programs(assignments: Sequence[Assignment], points: Sequence[Point], problems: Problems) -> None:
    """Add a problem, once, for each program that can't be translated and for each file of rows that does not fit."""
    setters = {
        (target.entity, target.param): index
        for index, assignment in enumerate(assignments)
        for target in assignment.targets
        if target.param in (PROGRAM, ENTRIES)
    }
    seen: set[tuple[str, str, str]] = set()
    for point in points if setters else ():
        for switch in dict.fromkeys(entity for entity, _ in setters):
            program, entries = (str(point.settings[switch].get(what, NONE)) for what in (PROGRAM, ENTRIES))
            if (switch, program, entries) in seen:
                continue
            seen.add((switch, program, entries))
            if found := _wrong(point, switch, program, entries):
                what, why = found
                index = setters.get((switch, what), setters.get((switch, PROGRAM), setters.get((switch, ENTRIES), 0)))
                problems.add(assignments[index].place_of(point.levels[index]), f"{switch}, {what}: {why}")


def _wrong(point: Point, switch: str, program: str, entries: str) -> tuple[str, str] | None:
    """(parameter, why it is wrong), of a switch at a point."""
    if program == NONE:
        return (ENTRIES, "want a program that they are of; got none") if entries != NONE else None
    if point.settings[switch].get("backend", "ebpf") != "ebpf":
        return PROGRAM, f"want the back end ebpf; got {point.settings[switch]['backend']}"
    for port in point.topology.ports(switch):
        if point.settings.get(port, {}).get("ecn_threshold", NONE) != NONE:
            return PROGRAM, f"want no ecn_threshold at {port}: which packets are marked the program says"
    try:
        layout = layout_of(program)
    except ProgramError as error:
        return PROGRAM, str(error)
    try:
        if entries != NONE:
            rows_of(entries, layout, point.topology, switch)
    except ValueError as error:
        return ENTRIES, str(error)
    return None
