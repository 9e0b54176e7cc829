# SPDX-License-Identifier: Apache-2.0
"""Kernels of one lab side by side: a flow and a leaf-spine in one kernel and in two, on one processor and on two."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median
from typing import Any

from testctl.plan import load_plan
from testctl.testbeds.lab import LabTestbed

FLOW = """
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, cc, cubic]
  - [all, mtu, 1500]
  - [switch:receiver, rate, 1gbit]
  - [switch:receiver, buffer, 1MB]
  - [switch, delay, {delay}]
  - [receiver, partition, {partition}]
  - [bulk, duration, {duration}]
"""
FABRIC = """
topology: {{leaf_spine: {{hosts: 32, leaves: 2, spines: 2}}}}
flows: {{{flows}}}
groups: {{west: [{west}, leaf1, spine1], east: [{east}, leaf2, spine2]}}
tuples:
  - [hosts, cc, cubic]
  - [hosts, capture, off]
  - [hosts, tcp_info, off]
  - [switches, telemetry, off]
  - [switches, rate, 10gbit]
  - [switches, buffer, 1MB]
  - [switches, delay, {delay}]
  - [east, partition, {partition}]
  - [flows, duration, 200ms]
"""
DELAYS = {"5ms": "3s", "100us": "3s", "5us": "1s"}
ROUNDS = 7
OF_FLOW = 3 * ROUNDS
"""The flow is short, and medians of seven rounds scatter by a twentieth."""
_WAYS = (("shared", 1), ("east", 1), ("east", 2))
"""Whether the second half has a kernel of its own, and on how many processors."""


def fabric(delay: str, partition: str) -> str:
    """Of each leaf's hosts: eight send to the first, the others to one behind the other leaf."""
    west, east = ([f"h{number}" for number in range(first, first + 16)] for first in (1, 17))
    pairs = [(host, west[0]) for host in west[1:9]] + [(host, east[0]) for host in east[1:9]]
    pairs += [*zip(west[9:], east[9:], strict=True), *zip(east[9:], west[9:], strict=True)]
    flows = ", ".join(f"f{number}: {start} -> {end}" for number, (start, end) in enumerate(pairs))
    return FABRIC.format(flows=flows, west=", ".join(west), east=", ".join(east), delay=delay, partition=partition)


def run(text: str, where: Path, processors: int) -> tuple[float, dict[str, float]]:
    """Wall seconds from the first packet to the end, and how long each kernel waited for the others."""
    points = load_plan(text.encode()).points
    lab = LabTestbed.for_points(points)
    where.mkdir(exist_ok=True)
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:processors])
    try:
        _, outcome = lab.run(points[0], where)
    finally:
        os.sched_setaffinity(0, allowed)
    if outcome.error or outcome.skip:
        raise SystemExit(outcome.error or outcome.skip)
    wall = outcome.wall
    return wall["ended"] - wall["traffic"], {name: s for name, s in wall.items() if name.startswith("waited")}


def several(where: Path) -> None:
    """In turn, some rounds, as the machine is not the same for long; medians, and the best in brackets."""

    def told(what: str, plan: Any, virtual_s: float, rounds: int) -> None:
        of_s: dict[tuple[str, int], list[float]] = {(part, number): [] for part, number in _WAYS}
        waits: list[str] = []
        for _ in range(rounds):
            for (part, processors), walls_s in of_s.items():
                s, waited = run(plan(part), where / f"{part}{processors}", processors)
                walls_s.append(s)
                waits = [f"{waited_s:.2f}" for waited_s in waited.values()] or waits
        one, on_one, on_two = of_s.values()
        print(
            f"{what}: one kernel on one processor {median(one):.2f} s ({min(one):.2f}), {virtual_s / median(one):.2f} "
            f"times the clock; of its speed two kernels on one processor {over(one, on_one)}, on two "
            f"{over(one, on_two)}, where they waited for {' and '.join(waits)} s; two processors over one "
            f"{over(on_one, on_two)}"
        )

    for delay, duration in DELAYS.items():
        told(
            f"1 Gb/s, delay {delay}",
            lambda part, delay=delay, duration=duration: FLOW.format(delay=delay, duration=duration, partition=part),
            float(duration.removesuffix("s")),
            OF_FLOW,
        )
    for delay in ("100us", "5us"):
        told(
            f"leaf-spine, 32 hosts, 10 Gb/s, delay {delay}", lambda part, delay=delay: fabric(delay, part), 0.2, ROUNDS
        )


def over(slow_s: list[float], fast_s: list[float]) -> str:
    return f"{median(slow_s) / median(fast_s):.2f} ({min(slow_s) / min(fast_s):.2f})"
