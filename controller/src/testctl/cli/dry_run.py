# SPDX-License-Identifier: Apache-2.0
"""What `testctl plan` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from testctl.core import path_facts
from testctl.core.testbed_kind import kind_of
from testctl.core.words import counted
from testctl.execution.pace import pace
from testctl.lab import memory
from testctl.plan import Plan, overview
from testctl.plan.cost import disk_bytes, memory_bytes, rows
from testctl.results.atomic import size_text
from testctl.system.memory import free_mb
from testctl.testbeds.point_spec import spec_of

COMBINATIONS = {1: "values", 2: "pairs of values", 3: "triples of values"}
"""The number of parameters whose values are combined -> what coverage counts."""


def lab_memory(plan: Plan) -> tuple[int, int]:
    """What the largest of the plan's labs needs, and what it is given, in MB; 0 on another testbed."""
    specs = [spec_of(point) for point in plan.points] if kind_of(plan.testbed).boots_kernels else []
    return max(map(memory.needed_mb, specs), default=0), max(map(memory.given_mb, specs), default=0)


def print_dry_run(plan: Plan, as_json: bool, places: Mapping[str, str]) -> None:
    """Points, coverage, estimate and what would be set, for a person or as JSON.

    places: the machine of each entity, on a rack
    """
    summary, (need_mb, given_mb), (times, known) = overview(plan), lab_memory(plan), pace(plan)
    if as_json:
        document: dict[str, Any] = summary.to_json()
        document |= {"placement": dict(places)} if places else {}
        document |= {"lab_memory_mb": {"needed": need_mb, "given": given_mb}} if need_mb else {}
        document |= {
            "wall_here_s": round(summary.wall_s * times, 3),
            "analysis_bytes": max(map(memory_bytes, plan.points), default=0),
            "disk_bytes": disk_bytes(plan.points, 1),
            "list": [point.to_json() for point in plan.points],
        }
        print(json.dumps(document, indent=1))
        return
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(f"{summary.name}: {summary.about}" if summary.about else summary.name)
    wall_s = int(summary.wall_s * times)
    console.print(
        f"{counted(summary.points, 'point')}, {summary.virtual_s:g} s of traffic, "
        f"about {wall_s // 60}:{wall_s % 60:02d} min with one job"
    )
    if known:
        console.print(f"the time is estimated {known}")
    if need_mb:
        free = free_mb()
        fits = memory.shortage(need_mb, 1, free) or (
            f"this machine has {free} MB free, enough for {free // need_mb} at once"
        )
        console.print(f"a lab needs about {need_mb} MB of memory and is given {given_mb} MB; {fits}")
    console.print(f"{_analysis(plan)}\n")
    table = Table("swept", Column("values", overflow="fold"), box=None)
    for swept in summary.factors:
        with_others = f" (with {', '.join(swept.together)})" if swept.together else ""
        table.add_row(swept.key + with_others, ", ".join(swept.values))
    if summary.factors:
        console.print(table)
    for coverage in summary.coverage:
        if coverage.feasible:
            what = COMBINATIONS.get(coverage.strength, f"{coverage.strength}-tuples")
            share = f"{100 * coverage.share:.1f} %" + (", from a sample" if coverage.sampled else "")
            console.print(f"covers {coverage.covered} of {coverage.feasible} {what} ({share})")
    if summary.paths:
        table = Table(*path_facts.HEADS, box=None)
        for row in path_facts.path_rows(summary.paths):
            table.add_row(*row)
        console.print(table)
    table = Table("entity", Column("would be set", overflow="fold"), box=None)
    for entity, values in summary.would_set.items():
        table.add_row(entity, "  ".join(f"{name}={'|'.join(texts)}" for name, texts in values.items()))
    console.print()
    console.print(table)
    if places:
        console.print(f"\non {plan.testbed}: " + ", ".join(f"{entity} is {name}" for entity, name in places.items()))
    if summary.expectations:
        console.print("\nexpects: " + "; ".join(summary.expectations))
    if plan.figures:
        console.print("figures: " + "; ".join(figure.title for figure in plan.figures))
    if plan.dropped:
        console.print("\ndropped, since --set or --without took away what they are about: " + "; ".join(plan.dropped))


def _analysis(plan: Plan) -> str:
    """What the packets take, of memory and on the disk."""
    most = max(plan.points, key=memory_bytes, default=None)
    if most is None or not rows(most):
        return "no packets are recorded"
    need, there = memory_bytes(most), free_mb() << 20
    short = f", and this machine has {size_text(there)} free: the run will be refused" if need > there else ""
    return (
        f"up to {rows(most):,} rows of packets in a point: about {size_text(need)} of memory to analyse it{short}; "
        f"the run takes up to {size_text(disk_bytes(plan.points, 1))} of the disk"
    )
