# SPDX-License-Identifier: Apache-2.0
"""What a plan asks of ports whose queue manages itself: a constant link with a rate, and limits that can be reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from testctl_agent.spec import aqm, fate, schedule
from testctl_agent.spec.aqm import Aqm
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Bytes, Duration, Rate

from testctl.core.point import Point
from testctl.plan.diagnostics import Place, Problems
from testctl.plan.model import Assignment

AQM = "aqm"
_UNMANAGED = ("down", "jitter", "largest", "ecn_threshold")
"""What a port with an AQM does not have."""
_HELD = ("delay", "reorder", "swap")
"""Actions of a fate after which a packet waits at its port, outside its queue."""


def check_aqms(assignments: Sequence[Assignment], points: Sequence[Point], problems: Problems) -> None:
    """Add a problem for each value of `aqm` that does not fit what else the port has, once."""
    setters = {
        target.entity: index
        for index, assignment in enumerate(assignments)
        for target in assignment.targets
        if target.param == AQM
    }
    seen: set[tuple[str, str]] = set()
    for point in points if setters else ():
        for port, index in setters.items():
            values = point.settings.get(port, {})
            found = aqm.parse(str(values.get(AQM, aqm.NONE)))
            for why in _reasons(found, values, point.settings.get(port.partition(":")[0], {})) if found else ():
                if (port, why) not in seen:
                    seen.add((port, why))
                    assignment, level = assignments[index], point.levels[index]
                    problems.add(_place(assignment, level), f"port {port}, {AQM}: {found}: {why}")


def _reasons(found: Aqm, values: Mapping[str, Value], switch: Mapping[str, Value]) -> Iterator[str]:
    rate, delay, buffer = values.get("rate", "none"), values.get("delay", 0), values.get("buffer", "none")
    if rate == "none":
        yield "want a rate at this port, or nothing ever waits there; got none"
    for name, value, unit in (("rate", rate, Rate), ("delay", delay, Duration)):
        if isinstance(value, str) and value != "none":
            yield f"want a {name} that does not change, such as {unit(10**7)}; got {value[:60]}"
    for name in _UNMANAGED:
        if (value := values.get(name, schedule.NONE)) != schedule.NONE:
            yield f"want no {name} at this port; got {value}"
    if found.kind == "red" and isinstance(buffer, int) and found["max"] > buffer:
        yield f"want max at most the port's buffer, {Bytes(buffer)}; got {Bytes(found['max'])}"
    if found.kind == "policer" and isinstance(rate, int) and found["rate"] > rate:
        yield f"want its rate at most the port's, {Rate(rate)}, or it never drops; got {Rate(found['rate'])}"
    if found.kind == "dualpi2" and isinstance(buffer, int) and isinstance(rate, int):
        least = rate * found["target"] // (8 * 10**9)
        if buffer <= least:
            at = f"{Bytes(least)} at {Rate(rate)}"
            yield f"want a buffer that holds more than its target, {at}; got {Bytes(buffer)}"
    held = [rule for rule in fate.parse(str(switch.get("fate", fate.NONE))) if rule.action in _HELD]
    if held:
        yield f"want no packets delayed or swapped by the switch's fate; got {fate.show(tuple(held))}"


def _place(assignment: Assignment, level: int) -> Place:
    return assignment.places[level] if level < len(assignment.places) else assignment.place
