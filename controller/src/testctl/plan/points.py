# SPDX-License-Identifier: Apache-2.0
"""From a plan to its points: which there are, and all that makes up each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from testctl_agent.params.flow.traffic import estimated_end_ns
from testctl_agent.spec import workload
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value

from testctl.core.path import path_rates
from testctl.core.point import Point, PointFlow
from testctl.plan.background import add_background
from testctl.plan.cover import Coverage, covering_array, least_points
from testctl.plan.cover import coverage as coverage_of
from testctl.plan.field_tables import MAX_SEED
from testctl.plan.formulas import Formulas
from testctl.plan.model import Levels, Plan, Target, WrittenPlan
from testctl.plan.registry import plain
from testctl.plan.space import Space

MAX_POINTS = 10_000
SERVER_PORT = 5001
CLIENT_PORT = 40000
PORTS_PER_FLOW = 64
REQUEST_PORT = 10_000
"""The first client port of flows that make requests, which need one for each connection."""


def space_of(plan: WrittenPlan) -> Space:
    return Space(plan.sizes, plan.excludes, plan.zips, [i for i, a in enumerate(plan.assignments) if a.range])


def expand(plan: WrittenPlan, max_points: int = MAX_POINTS) -> tuple[Point, ...]:
    """The plan's points, in the order of its tuples with the last one changing fastest.

    Raises PlanError when there are none, or more than `max_points`; that is found out before
    any is made.
    """
    space = space_of(plan)
    try:
        most = max_points // plan.repeat
        strength = plan.design.strength
        swept = [space.sizes[index] for index in space.factors]
        full = strength == 0 or strength >= len(swept)
        count = len(plan.rows) or (
            space.count(most) if full else 0 if space.excludes else least_points(swept, strength)
        )
        if count > most:
            raise PlanError(_too_many(plan, space, max_points))
        rows = list(plan.rows) or (list(space.points()) if full else covering_array(space, strength, plan.design.seed))
        if len(rows) > most:
            raise PlanError(_too_many(plan, space, max_points))
        if not rows:
            raise PlanError(f"expands to nothing: exclude leaves no point of {space.product}")
    except PlanError as error:
        raise PlanError(f"{plan.file}: {error}") from error
    points = tuple(_point(plan, levels, repeat) for levels in rows for repeat in range(plan.repeat))
    if len({point.id for point in points}) != len(points):
        raise PlanError(f"{plan.file}: two points are the same in all they set; want every value once")
    return points


def _too_many(plan: WrittenPlan, space: Space, max_points: int) -> str:
    times = f", repeated {plan.repeat} times" if plan.repeat > 1 else ""
    if plan.rows:
        return f"expands to more than --max-points {max_points}: design: sample: {len(plan.rows)}{times}"
    factors = [plan.assignments[index] for index in space.factors]
    sizes = " x ".join(f"{len(f.texts)} ({f.key})" for f in factors[:8]) + (" x …" if len(factors) > 8 else "")
    how = f"{space.product} before exclude" if plan.excludes else str(space.product)
    design = f"; cover: {plan.design.strength} would still be too many" if plan.design.strength else ""
    return f"expands to more than --max-points {max_points}: {sizes or '1'} = {how}{times}{design}"


def coverage(plan: Plan, strengths: Sequence[int] = (1, 2, 3)) -> tuple[Coverage, ...]:
    """For t = 1, 2, 3 how many of the value t-tuples that can occur the points cover."""
    space = space_of(plan)
    rows = list(dict.fromkeys(point.levels for point in plan.points))
    return tuple(coverage_of(space, rows, strength) for strength in strengths)


def _point(plan: WrittenPlan, levels: Levels, repeat: int) -> Point:
    settings: dict[str, dict[str, Value]] = {
        entity: {name: plain(value) for name, value in values.items()} for entity, values in plan.defaults.items()
    }
    for assignment, level in zip(plan.assignments, levels, strict=True):
        for target in assignment.targets:
            settings.setdefault(target.entity, {})[target.param] = plain(target.values[level])
    if plan.named is not None:
        settings = Formulas(plan, levels, settings, partial(_flows, plan)).settled()
    flows = _flows(plan, settings)
    for flow in plan.flows:
        settings.pop(flow.name, None)
    request_port = REQUEST_PORT + sum(flow.parallel for flow in flows if flow.asks)
    rated = tuple(_with_rate(flow, Point("", settings=settings, topology=plan.topology)) for flow in flows)
    bare = Point("", settings=settings, flows=rated, topology=plan.topology)
    whole = add_background(plan, bare, (SERVER_PORT + len(flows), request_port))
    topology = whole.topology.to_json()
    what = {
        "topology": {key: topology[key] for key in ("hosts", "switches", "links")},
        "settings": whole.settings,
        "flows": [flow.to_json() for flow in whole.flows],
        "repeat": repeat,
        "seed": plan.seed,
    }
    canonical = json.dumps(what, sort_keys=True, separators=(",", ":")).encode()
    return Point(
        id=hashlib.sha256(canonical).hexdigest()[:12],
        tuples=tuple((a.entity, a.param, a.texts[level]) for a, level in zip(plan.assignments, levels, strict=True)),
        settings=whole.settings,
        flows=whole.flows,
        topology=whole.topology,
        duration_ns=max((estimated_end_ns(flow.options) for flow in whole.flows), default=0),
        seed=(plan.seed + repeat) & MAX_SEED,
        repeat=repeat,
        levels=levels,
    )


def _flows(plan: WrittenPlan, settings: Mapping[str, Mapping[str, Value]]) -> list[PointFlow]:
    """The plan's flows, whose options are among the settings."""
    flows = []
    request_port = REQUEST_PORT
    for index, flow in enumerate(plan.flows):
        options = settings.get(flow.name, {})
        asks = workload.asks(options)
        parallel = workload.connections(options) if asks else int(options.get("parallel", 1))
        flows.append(
            PointFlow(
                name=flow.name,
                source=flow.source,
                sink=flow.sink,
                generator=str(options.get("generator", "tgen")),
                server_port=SERVER_PORT + index,
                client_port=request_port if asks else CLIENT_PORT + PORTS_PER_FLOW * index,
                parallel=parallel,
                options=options,
            )
        )
        request_port += parallel if asks else 0
    return flows


def setting(point: Point, target: Target) -> Value:
    """The value that a point has of what a tuple sets."""
    options = next((flow.options for flow in point.flows if flow.name == target.entity), {})
    return {**options, **point.settings.get(target.entity, {})}[target.param]


def _with_rate(flow: PointFlow, point: Point) -> PointFlow:
    """The flow with the arrival_rate that its `load` or `every` is; as it is where that can't be known."""
    load, sizes, every = (flow.options.get(name) for name in ("load", "sizes", "every"))
    if flow.asks and every is not None:
        return replace(flow, options={**flow.options, "arrival_rate": round(1e9 / float(every), 6)})
    rates = path_rates(point, flow, back=flow.reversed)
    if not flow.asks or load is None or sizes is None or "arrival_rate" in flow.options or not rates:
        return flow
    rate = float(load) * min(rates.values()) / 8 / workload.parse(str(sizes)).mean / workload.fanout(flow.options)
    return replace(flow, options={**flow.options, "arrival_rate": round(rate, 6)})
