# SPDX-License-Identifier: Apache-2.0
"""Checks ports with an AQM: they need a link of constant rate, and limits that the queue can reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from testctl_agent.spec import aqm, fate, schedule
from testctl_agent.spec.aqm import Aqm
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Bytes, Duration, Rate

from testctl.core.point import Point
from testctl.plan.diagnostics import Problems
from testctl.plan.model import Assignment

AQM = "aqm"
_UNMANAGED = ("down", "jitter", "largest", "ecn_threshold")
"""Parameters that exclude an AQM."""
_HELD = ("delay", "reorder", "swap")
"""Actions of a fate after which a packet waits at its port, outside its queue."""


def check_aqms(assignments: Sequence[Assignment], points: Sequence[Point], problems: Problems) -> None:
    """Add a problem, once, for each value of `aqm` that contradicts other parameters of the port."""
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
            scheme = aqm.parse(str(values.get(AQM, aqm.NONE)))
            for why in _reasons(scheme, values, point.settings.get(port.partition(":")[0], {})) if scheme else ():
                if (port, why) not in seen:
                    seen.add((port, why))
                    place = assignments[index].place_of(point.levels[index])
                    problems.add(place, f"port {port}, {AQM}: {scheme}: {why}")


def _reasons(scheme: Aqm, values: Mapping[str, Value], switch: Mapping[str, Value]) -> Iterator[str]:
    rate, delay, buffer = values.get("rate", "none"), values.get("delay", 0), values.get("buffer", "none")
    if rate == "none":
        yield "want a rate at this port, or nothing ever waits there; got none"
    for name, value, unit in (("rate", rate, Rate), ("delay", delay, Duration)):
        if isinstance(value, str) and value != "none":
            got = "a trace" if value.startswith("trace ") else value[:60]
            yield f"want a {name} that does not change, such as {unit(10**7)}; got {got}"
    for name in _UNMANAGED:
        if (value := values.get(name, schedule.NONE)) != schedule.NONE:
            yield f"want no {name} at this port; got {value}"
    if scheme.kind == "red" and isinstance(buffer, int) and scheme["max"] > buffer:
        yield f"want max at most the port's buffer, {Bytes(buffer)}; got {Bytes(scheme['max'])}"
    if scheme.kind == "policer" and isinstance(rate, int) and scheme["rate"] > rate:
        yield f"want its rate at most the port's, {Rate(rate)}, or it never drops; got {Rate(scheme['rate'])}"
    if scheme.kind == "dualpi2" and isinstance(buffer, int) and isinstance(rate, int):
        least = rate * scheme["target"] // (8 * 10**9)
        if buffer <= least:
            at = f"{Bytes(least)} at {Rate(rate)}"
            yield f"want a buffer that holds more than its target, {at}; got {Bytes(buffer)}"
    held = [rule for rule in fate.parse(str(switch.get("fate", fate.NONE))) if rule.action in _HELD]
    if held:
        yield f"want no packets delayed or swapped by the switch's fate; got {fate.show(tuple(held))}"
