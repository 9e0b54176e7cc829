# SPDX-License-Identifier: Apache-2.0
"""Finds flows without a limit: in the lab, where packets cost no virtual time, they send without bound."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from testctl_agent.params.flow import command
from testctl_agent.spec import schedule
from testctl_agent.spec.units import Duration

from testctl.core.path import path_rates
from testctl.core.point import Point, PointFlow
from testctl.core.testbed_kind import kind_of
from testctl.plan.model import Plan

WINDOW_BYTES = 6 * 2**20
"""The greatest value of the kernel's default tcp_rmem: what a flow has in flight at most."""
MOST_BPS = 20 * 10**9
"""Greatest rate, as window over round-trip time, that needs no warning."""
_LIMITS = ("rate", "read_rate", "bytes", "pattern")
"""Options of a flow that limit what it sends."""


def unlimited_flows(plan: Plan) -> list[str]:
    """A sentence for each flow without a limit, with its place; none on testbeds in real time, whose CPU limits."""
    if not kind_of(plan.testbed).boots_kernels:
        return []
    counts: dict[str, int] = {}
    for point in plan.points:
        for name in _of_point(point):
            counts[name] = counts.get(name, 0) + 1
    return [_sentence(plan, name, count) for name, count in counts.items()]


def _sentence(plan: Plan, name: str, count: int) -> str:
    (flow,) = (flow for flow in plan.flows if flow.name == name)
    way = plan.topology.path(flow.source, flow.sink)
    port = next((f"{at}:{to}" for at, to in pairwise(way) if at != flow.source), flow.source)
    points = f" at {count} of {len(plan.points)} points" if count < len(plan.points) else ""
    return (
        f"{flow.place}: flow {name} has no limit{points}: no port on its way has a rate, it has no rate and no bytes; "
        "in the lab it then sends hundreds of Gb/s, and a second of it takes many minutes and gigabytes: want a tuple "
        f"such as [{port}, rate, 1gbit], or [{name}, rate, 100mbit]"
    )


def _of_point(point: Point) -> Iterator[str]:
    for flow in point.flows:
        limited = flow.generator == command.GENERATOR or any(
            flow.options.get(name) not in (None, "none", "greedy") for name in _LIMITS
        )
        if not limited and not path_rates(point, flow, back=flow.reversed) and not _slow(point, flow):
            yield flow.name


def _slow(point: Point, flow: PointFlow) -> bool:
    """Whether the round-trip time is a limit."""
    there, back = point.topology.path(*flow.ends), point.topology.path(*flow.ends[::-1])
    settings = [point.settings.get(f"{at}:{to}", {}) for way in (there, back) for at, to in pairwise(way)]
    rtt_ns = sum(schedule.steps_of(port.get("delay"), Duration)[0].value or 0 for port in settings)
    return MOST_BPS * rtt_ns >= 8 * WINDOW_BYTES * 10**9
